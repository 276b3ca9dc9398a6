//! One entry of clouds.yaml as people write it: every field optional, scalars as text, layers filled from one another.
//!
//! Several files describe one cloud: clouds.yaml the place, secure.yaml the secrets, clouds-public.yaml what a vendor's
//! clouds share. [`Entry::fill_from`] lays the weaker layer under the stronger, field by field. Nothing is checked here;
//! `credentials` and the parent module turn a filled entry into something that can log in, or say what it lacks.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

/// A clouds.yaml, secure.yaml or clouds-public.yaml; keys that are not named here are left alone.
#[derive(Deserialize, Default)]
pub(crate) struct Document {
    /// Clouds by name.
    #[serde(default)]
    pub(crate) clouds: BTreeMap<String, Entry>,
    /// What vendors' profiles share, by the profile's name.
    #[serde(default, rename = "public-clouds")]
    pub(crate) profiles: BTreeMap<String, Entry>,
}

/// Reads a scalar as a secret; an unquoted number is its digits.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
}

macro_rules! layered {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* $(,)? } secret { $($secret:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $(pub(crate) $field: Option<String>,)*
            $(#[serde(deserialize_with = "secret")] pub(crate) $secret: Option<SecretString>,)*
        }

        impl $name {
            /// Takes from `weaker` what this one leaves open.
            pub(crate) fn fill_from(&mut self, weaker: &Self) {
                $(if self.$field.is_none() { self.$field.clone_from(&weaker.$field); })*
                $(if self.$secret.is_none() { self.$secret.clone_from(&weaker.$secret); })*
            }
        }
    };
}

layered! {
    /// Who logs in, and where to: the `auth` map.
    Login {
        auth_url, username, user_id, user_domain_name, user_domain_id, project_name, project_id, tenant_name,
        tenant_id, project_domain_name, project_domain_id, default_domain, application_credential_id,
        application_credential_name,
    } secret { password, application_credential_secret }
}

layered! {
    /// Everything else of an entry that matters here, and the login keys that older files write beside `auth`.
    Place {
        auth_type, profile, region_name, interface, endpoint_type, verify, insecure, cacert, cert, key, api_timeout,
        compute_endpoint_override, network_endpoint_override, user_domain_name, user_domain_id, project_name,
        project_id, project_domain_name, project_domain_id, default_domain,
    } secret {}
}

/// One cloud.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// The `auth` map.
    pub(crate) auth: Login,
    /// What stands beside it.
    pub(crate) place: Place,
}

macro_rules! entry_fields {
    ($($field:ident),* $(,)?) => {
        /// An entry as it stands in the file: `auth` nested, the rest flat.
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            auth: Login,
            $(#[serde(default)] $field: Option<String>,)*
        }

        impl<'de> Deserialize<'de> for Entry {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let Written { auth, $($field),* } = Written::deserialize(deserializer)?;
                Ok(Self { auth, place: Place { $($field),* } })
            }
        }
    };
}

entry_fields! {
    auth_type, profile, region_name, interface, endpoint_type, verify, insecure, cacert, cert, key, api_timeout,
    compute_endpoint_override, network_endpoint_override, user_domain_name, user_domain_id, project_name,
    project_id, project_domain_name, project_domain_id, default_domain,
}

impl Entry {
    /// Takes from `weaker` what this one leaves open.
    pub(crate) fn fill_from(&mut self, weaker: &Self) {
        self.auth.fill_from(&weaker.auth);
        self.place.fill_from(&weaker.place);
    }

    /// The login, with the keys beside `auth` laid under it.
    pub(crate) fn login(&self) -> Login {
        let mut login = self.auth.clone();
        let beside = &self.place;
        login.fill_from(&Login {
            user_domain_name: beside.user_domain_name.clone(),
            user_domain_id: beside.user_domain_id.clone(),
            project_name: beside.project_name.clone(),
            project_id: beside.project_id.clone(),
            project_domain_name: beside.project_domain_name.clone(),
            project_domain_id: beside.project_domain_id.clone(),
            default_domain: beside.default_domain.clone(),
            ..Login::default()
        });
        login
    }
}
