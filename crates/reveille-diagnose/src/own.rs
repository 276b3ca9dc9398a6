//! Pages of the causes that the engine proves itself, from the cloud's and the cluster's own objects.
//!
//! ```text
//!  core: code, label, clause, remedy ─┐
//!  OWN, below: seen, commands ────────┴─▶ page::own_page, where the catalogue has none of that code
//! ```
//!
//! The catalogue's causes are proved by lines of text; these are not, so they have no file there. What the table adds is for
//! people only: on what the engine rests, and how to look, or do it, by hand. It decides nothing.

use reveille_core::model::cause::Cause;

use crate::catalogue::Catalogue;

/// What people are told of one cause beside what the engine says of it.
struct Own {
    code: &'static str,
    /// On what it rests.
    seen: &'static str,
    /// By hand.
    commands: &'static [&'static str],
}

macro_rules! own {
    ($($code:literal $seen:literal [$($command:literal),* $(,)?];)*) => {
        static OWN: &[Own] = &[$(Own { code: $code, seen: $seen, commands: &[$($command),*] },)*];
    };
}

own! {
    "RV102" "Nova says BUILD for longer than the pool's `deadlines.build`."
        ["openstack server show INSTANCE -c status -c OS-EXT-STS:task_state -c fault", "openstack server event list INSTANCE"];
    "RV103" "Nova's task is deleting for longer than the pool's `deadlines.delete`, counted from when it was seen."
        ["openstack server show INSTANCE -c status -c OS-EXT-STS:task_state", "openstack server event list INSTANCE"];
    "RV104" "A port of the instance, as Neutron lists it, lacks a group of the pool's `securityGroups`. It says nothing of the machine's inside, and is mended first: a machine without its group cannot join."
        ["openstack port show PORT -c security_group_ids -c port_security_enabled", "openstack port set --security-group GROUP PORT"];
    "RV105" "A port lacks the group and cannot carry one, because its port security is off or its kind takes none. It is told and left alone."
        ["openstack port show PORT -c port_security_enabled -c binding_vnic_type"];
    "RV106" "Of the rules that let tcp, udp and icmp in from `network.podCIDRs`, some are in no form in the group; any equivalent or wider rule counts."
        ["openstack security group rule list GROUP --ingress", "openstack security group rule create GROUP --ingress --ethertype IPv4 --protocol tcp --remote-ip POD_RANGE"];
    "RV107" "The roster names a group by a name that none, or more than one, of the project's groups has. Nothing is put on a port for it."
        ["openstack security group list --project PROJECT"];
    "RV108" "A condition of the node that the roster lists (`network.unreachableConditions`) is true, while rules and routes are there. A rule that an interrupted nudge left behind is told under the same code."
        ["kubectl describe node NODE", "openstack security group rule list GROUP --long"];
    "RV109" "The router holds more than one route to a node's pod range. Those whose next hop is no live machine are what may be removed; where several are alive, a person decides."
        ["openstack router show ROUTER -c routes"];
    "RV111" "The router's routes, those that are needed now and one for the next node are more than its limit: seen in the answer that refused a route, or in the extension that tells it."
        ["openstack router show ROUTER -c routes"];
    "RV112" "The port of a node that has a pod range does not allow that range as an address pair, and the roster asks for it (`network.addressPairs`)."
        ["openstack port show PORT -c allowed_address_pairs", "openstack port set --allowed-address ip-address=POD_RANGE PORT"];
    "RV115" "A port of the instance is DOWN while the instance is ACTIVE. Sure where all its ports are; packets in its console speak against it."
        ["openstack port show PORT -c status -c binding_host_id", "openstack network agent list --host HOST"];
    "RV205" "The node's condition Ready is False: its kubelet answers and says why."
        ["kubectl get node NODE -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].message}'"];
    "RV206" "No incident carries it: who is being removed on purpose (a taint or an annotation of an autoscaler, a requested deletion) is excused, and `status` shows the reason. Removal that never ends is RV103 or RV208."
        ["reveille why MACHINE"];
    "RV207" "The node is Ready and carries a taint of the pool's `startupTaints` for longer than `deadlines.inService`. It is told and never hurt."
        ["kubectl describe node NODE | grep -A3 Taints"];
    "RV208" "The node carries a sign that it is being removed, or is being deleted, is not Ready and stays for longer than `deadlines.delete`; or it left with such a sign and its instance stays. It is told and never hurt."
        ["kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE", "kubectl get poddisruptionbudgets --all-namespaces"];
    "RV303" "The instance carries the mark of the roster's cluster and of none of its pools. Nothing is done to it."
        ["openstack server show INSTANCE -c tags -c properties", "openstack --os-compute-api-version 2.26 server set --tag POOL_TAG INSTANCE"];
    "RV304" "The marks of more than one pool fit the instance. Nothing is done to it."
        ["openstack server show INSTANCE -c tags -c properties"];
    "RV305" "Nova says SHUTOFF, and its node does not answer. Who stopped it stands in its log of actions."
        ["openstack server event list INSTANCE", "openstack server start INSTANCE"];
    "RV306" "EC2's system status check of the instance failed (`DescribeInstanceStatus`). It explains the silence of a machine whose node does not answer; on one that answers it is told. A reboot stays on the same host, so the escalation goes straight to stop and start, unless a group would replace what stops or an instance store would be lost."
        ["aws ec2 describe-instance-status --instance-ids INSTANCE", "aws ec2 stop-instances --instance-ids INSTANCE && aws ec2 wait instance-stopped --instance-ids INSTANCE && aws ec2 start-instances --instance-ids INSTANCE"];
    "RV307" "EC2's instance status check, or that of its disks, failed while its host is well. It explains the silence of a machine whose node does not answer; on one that answers it is told."
        ["aws ec2 describe-instance-status --instance-ids INSTANCE", "aws ec2 get-console-output --latest --output text --instance-id INSTANCE"];
    "RV308" "A scheduled event of EC2 that is neither completed nor cancelled, a spot interruption or a rebalance recommendation. Its time is the provider's and is shown as text. It is told and never acted upon; what is being interrupted is left alone."
        ["aws ec2 describe-instance-status --instance-ids INSTANCE --query 'InstanceStatuses[].Events'", "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data"];
    "RV309" "EC2 describes the instance by its id as ended or stopped, and names itself as the reason (`Server.SpotInstanceTermination` and its like). Its Node is removed where the pool allows cleanup; nothing is replaced by us."
        ["aws ec2 describe-instances --instance-ids INSTANCE --query 'Reservations[].Instances[].StateReason'"];
    "RV310" "The instance has no instance profile, and never joined. Likely where other machines of its pool that joined have one."
        ["aws ec2 describe-instances --instance-ids INSTANCE --query 'Reservations[].Instances[].IamInstanceProfile'", "aws ec2 associate-iam-instance-profile --instance-id INSTANCE --iam-instance-profile Name=PROFILE"];
    "RV311" "A node that is not Ready names an instance that its cloud has, by its id, and that is in no listing because it lacks the cluster's mark. Nothing is done to it: nothing proves that it is ours."
        ["aws ec2 create-tags --resources INSTANCE --tags Key=kubernetes.io/cluster/ID,Value=owned"];
    "RV401" "No incident carries it: a listing that is empty, cut short or lost most of its servers or ports is not believed, no decision rests on it, and the reason stands beside the source in `status`, `why` and `plan`."
        ["openstack server list", "reveille status"];
    "RV402" "No incident carries it: a node list that is empty or lost most of its nodes is not believed, no decision rests on it, and the reason stands beside the source in `status`, `why` and `plan`."
        ["kubectl get nodes", "reveille status"];
    "RV403" "Keystone's list of effective assignments on the project (`role_assignments?user.id=…&scope.project.id=…&effective`) holds no such role for a user that the roster names under `access`. What it holds through a group, by inheritance or by another role counts as held. Roles are read at the start, every `access.checkEvery`, and every five minutes while one is missing. Nothing fails at once: the next route, volume or port is refused."
        ["openstack role assignment list --project PROJECT --user USER --effective --names", "openstack role add --project PROJECT --user USER ROLE"];
    "RV404" "Keystone refuses to list the user's assignments (403), answers what cannot be read, or failed three times in a row. That is told once and never acted upon: a role that cannot be read is not a missing role. Reveille's token is of the project, and to such a token Keystone's own policy allows it with the role `admin` only."
        ["openstack role assignment list --project PROJECT --user USER --effective --names"];
}

/// The causes that the engine tells by itself and the catalogue does not describe, in order of their codes.
pub fn causes(catalogue: &Catalogue) -> impl Iterator<Item = &'static Cause> + '_ {
    Cause::OWN.iter().filter(|cause| catalogue.cause(cause.code()).is_none())
}

/// The cause of that code or label, where the catalogue has none.
pub fn cause(catalogue: &Catalogue, name: &str) -> Option<&'static Cause> {
    causes(catalogue).find(|cause| cause.code().eq_ignore_ascii_case(name) || cause.label() == name)
}

/// On what it rests, and how to look at that, or do it, by hand.
pub(crate) fn proof(cause: &Cause) -> Option<(&'static str, &'static [&'static str])> {
    OWN.iter().find(|own| own.code == cause.code()).map(|own| (own.seen, own.commands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_cause_has_a_page_with_its_proof() {
        let catalogue = Catalogue::built_in().unwrap();
        let told: Vec<&str> = causes(&catalogue).map(Cause::code).collect();
        let known: Vec<&str> = OWN.iter().map(|own| own.code).collect();
        assert_eq!(told, known);
        for cause in causes(&catalogue) {
            let page = crate::page::own_page(cause);
            assert!(page.contains("```console") && page.contains("## What proves it"), "{}", cause.code());
        }
        assert!(cause(&catalogue, "service-user-role-missing").is_some_and(|cause| cause.code() == "RV403"));
        assert!(cause(&catalogue, "RV110").is_none());
    }
}
