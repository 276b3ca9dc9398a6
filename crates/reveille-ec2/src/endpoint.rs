//! Where a region's services are: standard, China, GovCloud and the closed partitions; FIPS and dual stack.
//!
//! An address that the settings name (`AWS_ENDPOINT_URL_EC2`, `AWS_ENDPOINT_URL`, a profile's, the roster's) goes before
//! all of this, and is used as it stands.

use crate::actions::Service;

/// Which of a region's addresses are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) fips: bool,
    pub(crate) dualstack: bool,
}

/// The service's address in a region.
pub(crate) fn of(service: Service, region: &str, variant: Variant) -> String {
    let (suffix, dual) = suffixes(region);
    let name = service.prefix();
    // In GovCloud the plain addresses are the validated ones, and others do not exist.
    let fips = if variant.fips && !region.starts_with("us-gov-") { "-fips" } else { "" };
    let suffix = if variant.dualstack { dual } else { suffix };
    format!("https://{name}{fips}.{region}.{suffix}/")
}

/// A partition's domain, and the one of its dual-stack addresses.
fn suffixes(region: &str) -> (&'static str, &'static str) {
    match region {
        _ if region.starts_with("cn-") => ("amazonaws.com.cn", "api.amazonwebservices.com.cn"),
        _ if region.starts_with("us-isob-") => ("sc2s.sgov.gov", "api.aws.scloud"),
        _ if region.starts_with("us-isof-") => ("csp.hci.ic.gov", "api.aws.hci.ic.gov"),
        _ if region.starts_with("eu-isoe-") => ("cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
        _ if region.starts_with("us-iso-") => ("c2s.ic.gov", "api.aws.ic.gov"),
        _ if region.starts_with("eusc-") => ("amazonaws.eu", "api.amazonwebservices.eu"),
        _ => ("amazonaws.com", "api.aws"),
    }
}

/// The partition, as it stands in ARNs.
pub(crate) fn partition(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "aws-cn",
        _ if region.starts_with("us-gov-") => "aws-us-gov",
        _ if region.starts_with("us-isob-") => "aws-iso-b",
        _ if region.starts_with("us-isof-") => "aws-iso-f",
        _ if region.starts_with("eu-isoe-") => "aws-iso-e",
        _ if region.starts_with("us-iso-") => "aws-iso",
        _ if region.starts_with("eusc-") => "aws-eusc",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_addresses_of_its_own() {
        let plain = Variant::default();
        let (fips, dual) =
            (Variant { fips: true, dualstack: false }, Variant { fips: false, dualstack: true });
        let both = Variant { fips: true, dualstack: true };
        let cases = [
            (Service::Ec2, "eu-central-1", plain, "https://ec2.eu-central-1.amazonaws.com/"),
            (Service::AutoScaling, "us-east-1", plain, "https://autoscaling.us-east-1.amazonaws.com/"),
            (Service::Ec2, "cn-north-1", plain, "https://ec2.cn-north-1.amazonaws.com.cn/"),
            (Service::Ec2, "us-east-1", fips, "https://ec2-fips.us-east-1.amazonaws.com/"),
            (Service::Ec2, "us-gov-west-1", fips, "https://ec2.us-gov-west-1.amazonaws.com/"),
            (Service::Ec2, "eu-west-1", dual, "https://ec2.eu-west-1.api.aws/"),
            (Service::Ec2, "us-east-2", both, "https://ec2-fips.us-east-2.api.aws/"),
            (Service::Sts, "eusc-de-east-1", plain, "https://sts.eusc-de-east-1.amazonaws.eu/"),
        ];
        for (service, region, variant, address) in cases {
            assert_eq!(of(service, region, variant), address);
        }
    }

    #[test]
    fn every_partition_has_a_name_of_its_own() {
        let cases = [
            ("eu-central-1", "aws"),
            ("cn-north-1", "aws-cn"),
            ("us-gov-west-1", "aws-us-gov"),
            ("us-iso-east-1", "aws-iso"),
            ("us-isob-east-1", "aws-iso-b"),
            ("eu-isoe-west-1", "aws-iso-e"),
            ("us-isof-south-1", "aws-iso-f"),
            ("eusc-de-east-1", "aws-eusc"),
        ];
        for (region, name) in cases {
            assert_eq!(partition(region), name, "{region}");
        }
    }
}
