//! Secrets of XML: of attributes, of elements, and of a name and its value in elements of their own; and what beside them stays.

use crate::attacked::masked;
use crate::attacked_again::{hidden, stay};

/// One that looks random, one that people choose, and a word.
pub(crate) const SECRETS: [&str; 3] = ["hUnt3rTwo9zQ", "Winter-2026!", "lemonade"];

pub(crate) fn all_hidden(forms: &[&str]) {
    for secret in SECRETS {
        hidden(secret, forms);
    }
}

#[test]
fn secret_of_an_element_does_not_survive() {
    all_hidden(&[
        "<password value=\"~\"/>",
        "<password value='~' />",
        "<password   value = \"~\"   >",
        "<add key=\"DbPassword\" value=\"~\"/>",
        "<add value=\"~\" key=\"DbPassword\"/>",
        "<add\n    key=\"DbPassword\"\n    value=\"~\" />",
        "<property name=\"javax.persistence.jdbc.password\" value=\"~\"/>",
        "<ns:password>~</ns:password>",
        "<soap:Body><wsse:Password Type=\"http://x#PasswordText\">~</wsse:Password></soap:Body>",
        "<password type=\"plain\">~</password>",
        "<password><![CDATA[~]]></password>",
        "<password>\n  <![CDATA[~]]>\n</password>",
        "<password>\n    ~\n</password>",
        "<password type=\"plain\">\n    ~\n</password>",
        "<Item><Key>db.password</Key><Value>~</Value></Item>",
        "<Key>db.password</Key>\n<Value>~</Value>",
        "<Key>\n  DB_PASSWORD\n</Key>\n<Value>\n  ~\n</Value>",
        "<member name=\"password\"><string>~</string></member>",
        "<member><name>password</name><value><string>~</string></value></member>",
        "<member>\n<name>password</name>\n<value>\n<string>~</string>\n</value>\n</member>",
        "<key>Password</key>\n<string>~</string>",
        "\t<key>wifi-Password</key>\n\t<string>~</string>",
        "<hudson.model.StringParameterValue><name>DB_PASSWORD</name><value>~</value></hudson.model.StringParameterValue>",
        "<hudson.model.StringParameterDefinition>\n  <name>DB_PASSWORD</name>\n  <description>of the database</description>\n  <defaultValue>~</defaultValue>\n</hudson.model.StringParameterDefinition>",
        "<secret class=\"hudson.util.Secret\">~</secret>",
        "<entry><string>DB_PASSWORD</string><string>~</string></entry>",
        "<user username=\"admin\" password=\"~\" roles=\"manager-gui\"/>",
        "<Connector port=\"8443\" keystoreFile=\"conf/k.jks\" keystorePass=\"~\" />",
        "<server><id>nexus</id><username>ci</username><password>~</password></server>",
        "<servers>\n  <server>\n    <id>nexus</id>\n    <passphrase>~</passphrase>\n  </server>\n</servers>",
        "<graphics type='vnc' port='5900' passwd='~'/>",
        "<graphics type='spice' passwd='~' passwdValidTo='2027-01-01T00:00:00'>",
        "<AutoLogon><Password><Value>~</Value><PlainText>true</PlainText></Password></AutoLogon>",
        "<AdministratorPassword>\n    <Value>~</Value>\n    <PlainText>true</PlainText>\n</AdministratorPassword>",
        "<entry key=\"db.password\">~</entry>",
        "<name>fs.s3a.secret.key</name>\n<value>~</value>",
    ]);
}

#[test]
fn element_without_a_secret_stays() {
    stay(&[
        "<password/>",
        "<password></password>",
        "<password>\n</password>",
        "<password value=\"\"/>",
        "<passwordPolicy minLength=\"8\"/>",
        "<password minLength=\"8\" maxLength=\"64\"/>",
        "<token-expiry>24h</token-expiry>",
        "<xs:element name=\"password\" type=\"xs:string\" minOccurs=\"0\"/>",
        "<secret ephemeral='no' private='yes'>\n  <uuid>0f1e2d3c-1111-2222-3333-444455556666</uuid>\n  <usage type='ceph'>\n    <name>client.libvirt secret</name>\n  </usage>\n</secret>",
        "<auth username='libvirt'><secret type='ceph' uuid='0f1e2d3c-1111-2222-3333-444455556666'/></auth>",
        "<key>PasswordPolicy</key>\n<string>strict</string>",
        "<key>RunAtLoad</key>\n<true/>",
        "<key>Label</key>\n<string>com.example.agent</string>",
        "usage: kubeadm join <host> --token <token> --discovery-token-ca-cert-hash <hash>",
        "usage: login <user> <password> then wait for <host> to answer",
        "<name>db.port</name>\n<value>5432</value>",
        "<property name=\"port\" value=\"80\"/>",
        "<add key=\"PasswordFormat\" value=\"Hashed\"/>",
        "<password>${env.NEXUS_PASSWORD}</password>",
        "<title>token refresh</title><p>the token was not found</p>",
        "the <token> was rejected by the <server> at 10.0.0.1",
        "<graphics type='vnc' port='5900' autoport='yes' listen='127.0.0.1'/>",
        "<key>Password</key>\n<key>Label</key>\n<string>com.example.agent</string>",
    ]);
}

#[test]
fn what_stands_around_the_value_of_an_element_stays() {
    assert_eq!(
        masked("<server id=\"7\"><password type=\"plain\">x7</password><port>8443</port></server>"),
        "<server id=\"7\"><password type=\"plain\">[masked]</password><port>8443</port></server>"
    );
    assert_eq!(
        masked("<password>\n  <![CDATA[x7]]>\n</password> done"),
        "<password>\n  <![CDATA[[masked]]]>\n</password> done"
    );
    assert_eq!(
        masked("<key>Password</key>\n<string>x7</string>\n<key>Label</key>\n<string>agent</string>"),
        "<key>Password</key>\n<string>[masked]</string>\n<key>Label</key>\n<string>agent</string>"
    );
    assert_eq!(
        masked("<add key=\"DbPassword\" value=\"x7\" x=\"1\"/>"),
        "<add key=\"DbPassword\" value=[masked] x=\"1\"/>"
    );
}
