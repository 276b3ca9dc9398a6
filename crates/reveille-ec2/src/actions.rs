//! Every action of AWS that this adapter asks for: one closed list, from which the IAM policy is made.
//!
//! A request can only be made from an [`Action`] of this list ([`crate::query_protocol::Request::new`] takes nothing else), so
//! the adapter calls no other action. A test drives each question and each call, and shows that every action of the list is
//! used.

/// A service of AWS that speaks the Query protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Service {
    Ec2,
    AutoScaling,
    Sts,
}

impl Service {
    /// In IAM policies, in signatures and in host names.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::AutoScaling => "autoscaling",
            Self::Sts => "sts",
        }
    }

    /// As `AWS_ENDPOINT_URL_…` and the services sections of profiles name it.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::AutoScaling => "Auto Scaling",
            Self::Sts => "STS",
        }
    }

    /// The version of its API that is spoken.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::AutoScaling => "2011-01-01",
            Self::Sts => "2011-06-15",
        }
    }
}

/// What may be asked for, and on what a policy can restrict it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// Every client with credentials may call it: no policy names it.
    Free,
    /// Reads; AWS knows no narrower resource than all.
    Read,
    /// Reads one instance's words.
    ReadInstance,
    /// Changes an instance that carries the cluster's tag.
    Instance,
    /// Changes security groups and interfaces, which need not carry a tag.
    Network,
    /// Changes a route table.
    Routes,
    /// Ends an instance through the group that owns it.
    Group,
}

/// One action.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Action {
    pub(crate) service: Service,
    pub(crate) name: &'static str,
    pub(crate) right: Right,
}

impl Action {
    /// `ec2:DescribeInstances`.
    pub(crate) fn iam(&self) -> String {
        format!("{}:{}", self.service.prefix(), self.name)
    }

    /// The element that its answer is.
    pub(crate) fn answer(&self) -> String {
        format!("{}Response", self.name)
    }

    /// Reads are asked again when they come to nothing; changes never.
    pub(crate) const fn is_read(&self) -> bool {
        matches!(self.right, Right::Free | Right::Read | Right::ReadInstance)
    }
}

macro_rules! actions {
    ($($constant:ident = $service:ident $name:literal $right:ident;)*) => {
        $(pub(crate) const $constant: &Action =
            &Action { service: Service::$service, name: $name, right: Right::$right };)*
        /// All of them.
        pub(crate) const ALL: &[&Action] = &[$($constant),*];
    };
}

actions! {
    GET_CALLER_IDENTITY = Sts "GetCallerIdentity" Free;
    DESCRIBE_INSTANCES = Ec2 "DescribeInstances" Read;
    DESCRIBE_INSTANCE_STATUS = Ec2 "DescribeInstanceStatus" Read;
    DESCRIBE_INSTANCE_TYPES = Ec2 "DescribeInstanceTypes" Read;
    DESCRIBE_SPOT_REQUESTS = Ec2 "DescribeSpotInstanceRequests" Read;
    DESCRIBE_INTERFACES = Ec2 "DescribeNetworkInterfaces" Read;
    DESCRIBE_GROUPS = Ec2 "DescribeSecurityGroups" Read;
    DESCRIBE_GROUP_RULES = Ec2 "DescribeSecurityGroupRules" Read;
    DESCRIBE_ROUTE_TABLES = Ec2 "DescribeRouteTables" Read;
    DESCRIBE_SCALING_GROUPS = AutoScaling "DescribeAutoScalingGroups" Read;
    DESCRIBE_SCALING_INSTANCES = AutoScaling "DescribeAutoScalingInstances" Read;
    GET_CONSOLE_OUTPUT = Ec2 "GetConsoleOutput" ReadInstance;
    REBOOT_INSTANCES = Ec2 "RebootInstances" Instance;
    STOP_INSTANCES = Ec2 "StopInstances" Instance;
    START_INSTANCES = Ec2 "StartInstances" Instance;
    TERMINATE_INSTANCES = Ec2 "TerminateInstances" Instance;
    TERMINATE_IN_GROUP = AutoScaling "TerminateInstanceInAutoScalingGroup" Group;
    AUTHORIZE_INGRESS = Ec2 "AuthorizeSecurityGroupIngress" Network;
    AUTHORIZE_EGRESS = Ec2 "AuthorizeSecurityGroupEgress" Network;
    REVOKE_INGRESS = Ec2 "RevokeSecurityGroupIngress" Network;
    REVOKE_EGRESS = Ec2 "RevokeSecurityGroupEgress" Network;
    MODIFY_INTERFACE = Ec2 "ModifyNetworkInterfaceAttribute" Network;
    CREATE_ROUTE = Ec2 "CreateRoute" Routes;
    DELETE_ROUTE = Ec2 "DeleteRoute" Routes;
}
