//! A request of the Query protocol: an action and its parameters as a form.
//!
//! Lists are numbered from 1 (`InstanceId.1`, `Filter.2.Value.1`), nested ones by dots. The form is encoded in one place,
//! because the signature is over exactly these bytes.

use crate::actions::Action;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) action: &'static Action,
    params: Vec<(String, String)>,
    filters: u32,
}

impl Request {
    pub(crate) const fn new(action: &'static Action) -> Self {
        Self { action, params: Vec::new(), filters: 0 }
    }

    /// Adds one parameter.
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Adds `name.1`, `name.2`, … .
    pub(crate) fn list<V: Into<String>>(self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        let numbered = values.into_iter().zip(1_u32..);
        numbered.fold(self, |request, (value, n)| request.with(format!("{name}.{n}"), value))
    }

    /// Adds a filter: the object has one of these values, to the letter. Several filters must all be met.
    pub(crate) fn filter<V: Into<String>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.filters += 1;
        let filter = format!("Filter.{}", self.filters);
        let values = values.into_iter().map(|value| to_the_letter(&value.into()));
        self.with(format!("{filter}.Name"), name).list(&format!("{filter}.Value"), values)
    }

    /// The bytes that are signed and sent.
    pub(crate) fn form(&self) -> String {
        let mut form = format!("Action={}&Version={}", self.action.name, self.action.service.version());
        for (name, value) in &self.params {
            form.push('&');
            encode(&mut form, name);
            form.push('=');
            encode(&mut form, value);
        }
        form
    }
}

/// EC2 reads `*` and `?` in a filter's value as "anything", and takes what follows a backslash as it stands.
fn to_the_letter(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if matches!(letter, '*' | '?' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Everything but RFC 3986's unreserved characters is written as its bytes.
fn encode(out: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::DESCRIBE_INSTANCES;

    #[test]
    fn a_form_numbers_its_lists_and_encodes_every_odd_byte() {
        let request = Request::new(DESCRIBE_INSTANCES)
            .filter("tag-key", ["kubernetes.io/cluster/prod"])
            .filter("tag:Näme", ["a b", "c&d=e"])
            .with("MaxResults", "1000");
        assert_eq!(
            request.form(),
            "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag-key\
             &Filter.1.Value.1=kubernetes.io%2Fcluster%2Fprod&Filter.2.Name=tag%3AN%C3%A4me\
             &Filter.2.Value.1=a%20b&Filter.2.Value.2=c%26d%3De&MaxResults=1000"
        );
    }

    #[test]
    fn a_filter_means_its_values_and_nothing_like_them() {
        let request = Request::new(DESCRIBE_INSTANCES).filter("tag:pool", [r"a\b*", "c?"]);
        assert!(
            request.form().ends_with("Filter.1.Value.1=a%5C%5Cb%5C%2A&Filter.1.Value.2=c%5C%3F"),
            "{}",
            request.form()
        );
    }
}
