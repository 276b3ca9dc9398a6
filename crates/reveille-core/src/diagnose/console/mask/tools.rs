//! Options of commands that take a secret and do not say so by their names: a table.
//!
//! Facts of the tools' own manuals; gitleaks has one of them (`curl-auth-user`). An option whose name tells (`--password`,
//! `--token`) is in no table: the name is enough.

/// How the secret stands with its option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The next word: `-p x`.
    Word,
    /// The word behind the next one: `user set password 2 x`.
    Second,
    /// The next word, behind its first colon when it has one: `-u user:x`.
    Account,
    /// The next word, behind its first `%`: `-U user%x`.
    Percent,
    /// The rest of this word: `-px`.
    Joined,
    /// The rest of this word, behind its first colon when it has one: `-uuser:x`.
    JoinedAccount,
    /// The next word, when it is quoted: `identified by 'x'`.
    Quoted,
    /// The next word, or the one behind it where SQL says how it is kept: `IDENTIFIED BY x`, `IDENTIFIED BY VALUES 'x'`.
    Statement,
    /// The first word that no option takes: `-m sha-512 x salt`.
    First,
    /// The next word, behind its first comma: `-u user,x`.
    Comma,
    /// The next word, behind its last colon: `-y hmac-sha256:name:x`.
    LastColon,
    /// The next word, behind its first slash: `10.0.0.9:25000/x`.
    Path,
    /// Every word behind its first `=`: `kv put secret/db name=x`.
    Assigned,
    /// The next word, behind its first `=`, or the rest of this one behind the second: `--from-literal=key=x`.
    Literal,
}

/// A command, a word that has to follow it (`login`), and its options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    /// Its names.
    pub(super) names: &'static [&'static str],
    /// The options count behind one of these words, or behind one that begins with it when it ends with `=`; always, when there
    /// is none.
    pub(super) behind: &'static [&'static str],
    /// Its options.
    pub(super) options: &'static [(&'static str, Takes)],
    /// How the last word of the command is the secret, when it is.
    pub(super) last: Option<Takes>,
    /// Its short options without an argument. They are written together with one that takes the secret, in any order.
    pub(super) flags: &'static str,
}

impl Tool {
    /// What stands behind this short option where others are written together with it: `x` of `-sSLux` for `-u`.
    pub(super) fn written_together<'w>(&self, word: &'w str, option: &str) -> Option<&'w str> {
        let short = option.strip_prefix('-').filter(|short| short.len() == 1)?;
        let letters = word.strip_prefix('-').filter(|_| !self.flags.is_empty())?;
        letters.trim_start_matches(|c| self.flags.contains(c)).strip_prefix(short)
    }
}

const fn tool(
    names: &'static [&'static str],
    behind: &'static [&'static str],
    options: &'static [(&'static str, Takes)],
) -> Tool {
    Tool { names, behind, options, last: None, flags: "" }
}

const fn last(names: &'static [&'static str], behind: &'static [&'static str]) -> Tool {
    Tool { last: Some(Takes::Word), ..tool(names, behind, &[]) }
}

/// Every tool that is known.
pub(super) const TOOLS: [Tool; 71] = [
    Tool {
        flags: "#012346aBfgGiIjJklLMnNOpqRsSvVZ",
        ..tool(
            &["curl"],
            &[],
            &[
                ("-u", Takes::Account),
                ("--user", Takes::Account),
                ("-U", Takes::Account),
                ("--proxy-user", Takes::Account),
                ("-u", Takes::JoinedAccount),
                ("-U", Takes::JoinedAccount),
                ("-b", Takes::Word),
                ("--cert", Takes::LastColon),
                ("-E", Takes::LastColon),
            ],
        )
    },
    tool(&["http", "https", "xh"], &[], &[("-a", Takes::Account), ("--auth", Takes::Account)]),
    tool(&["crictl"], &[], &[("--creds", Takes::Account), ("--auth", Takes::Word)]),
    tool(&["ctr"], &[], &[("--user", Takes::Account), ("-u", Takes::Account), ("-u", Takes::JoinedAccount)]),
    tool(
        &["skopeo", "podman", "buildah"],
        &[],
        &[("--creds", Takes::Account), ("--src-creds", Takes::Account), ("--dest-creds", Takes::Account)],
    ),
    tool(
        &[
            "docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "az", "oc", "cf",
            "regctl", "ibmcloud",
        ],
        &["login"],
        &[("-p", Takes::Word), ("-p", Takes::Joined)],
    ),
    tool(&["sshpass"], &[], &[("-p", Takes::Word), ("-p", Takes::Joined)]),
    tool(
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlcheck",
            "mysqlsh",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        &[],
        &[("-p", Takes::Joined)],
    ),
    tool(
        &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"],
        &[],
        &[("-p", Takes::Word), ("-p", Takes::Joined)],
    ),
    tool(
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete", "ldappasswd"],
        &[],
        &[("-w", Takes::Word), ("-w", Takes::Joined), ("-s", Takes::Word), ("-a", Takes::Word)],
    ),
    tool(
        &["redis-cli", "valkey-cli"],
        &[],
        &[("-a", Takes::Word), ("-u", Takes::Account), ("AUTH", Takes::Word), ("auth", Takes::Word)],
    ),
    tool(&["ipmitool"], &[], &[("-P", Takes::Word), ("-P", Takes::Joined), ("password", Takes::Second)]),
    tool(
        &["snmpget", "snmpwalk", "snmpbulkwalk", "snmpset", "snmptrap"],
        &[],
        &[("-c", Takes::Word), ("-c", Takes::Joined), ("-A", Takes::Word), ("-X", Takes::Word)],
    ),
    tool(&["sqlcmd", "bcp"], &[], &[("-P", Takes::Word), ("-P", Takes::Joined)]),
    tool(
        &["smbclient", "rpcclient", "net", "smbget", "wbinfo"],
        &[],
        &[("-U", Takes::Percent), ("--user", Takes::Percent), ("-a", Takes::Percent)],
    ),
    tool(&["useradd", "usermod", "adduser"], &[], &[("-p", Takes::Word), ("--password", Takes::Word)]),
    tool(&["zip", "unzip", "zipcloak"], &[], &[("-P", Takes::Word)]),
    tool(&["7z", "7za", "7zr", "rar", "unrar"], &[], &[("-p", Takes::Joined), ("-hp", Takes::Joined)]),
    tool(&["openssl"], &[], &[("-k", Takes::Word), ("-K", Takes::Word), ("-pass", Takes::Word)]),
    tool(&["ssh-keygen", "dropbearkey"], &[], &[("-N", Takes::Word), ("-P", Takes::Word)]),
    tool(
        &["iscsiadm"],
        &["node.session.auth.password", "node.session.auth.password_in"],
        &[("-v", Takes::Word)],
    ),
    tool(&["etcdctl"], &[], &[("--user", Takes::Account)]),
    tool(&["kubectl", "k3s", "oc", "microk8s.kubectl"], &[], &[("--from-literal", Takes::Literal)]),
    tool(
        &["nmcli"],
        &[],
        &[
            ("password", Takes::Word),
            ("wifi-sec.psk", Takes::Word),
            ("802-11-wireless-security.psk", Takes::Word),
            ("wifi-sec.wep-key0", Takes::Word),
            ("802-1x.password", Takes::Word),
        ],
    ),
    tool(
        &["aws"],
        &[],
        &[
            ("aws_secret_access_key", Takes::Word),
            ("aws_session_token", Takes::Word),
            ("--master-user-password", Takes::Word),
        ],
    ),
    tool(&["mosquitto_pub", "mosquitto_sub"], &[], &[("-P", Takes::Word)]),
    tool(&["xfreerdp", "xfreerdp3", "rdesktop"], &[], &[("/p:", Takes::Joined), ("-p", Takes::Word)]),
    tool(&["psexec", "winexe", "evil-winrm"], &[], &[("-p", Takes::Word)]),
    tool(&["cryptsetup", "systemd-cryptenroll"], &[], &[("--passphrase", Takes::Word)]),
    // No commands, and written alike: haproxy, SQL, Debian's preseed.
    tool(&["stats"], &[], &[("auth", Takes::Account)]),
    tool(&["IDENTIFIED", "identified"], &[], &[("BY", Takes::Statement), ("by", Takes::Quoted)]),
    tool(&["d-i"], &[], &[("password", Takes::Word)]),
    last(&["htpasswd"], &[]),
    last(&["wpa_passphrase"], &[]),
    last(&["rabbitmqctl"], &["add_user", "change_password"]),
    last(&["vault", "bao"], &["login", "unseal"]),
    last(&["mc", "mcli"], &["alias", "config"]),
    tool(&["vault", "bao", "consul"], &["kv"], &[("=", Takes::Assigned)]),
    tool(&["consul", "serf", "nomad"], &[], &[("-encrypt", Takes::Word)]),
    tool(&["aws"], &["put-parameter"], &[("--value", Takes::Word)]),
    tool(&["az"], &["keyvault"], &[("--value", Takes::Word)]),
    tool(&["gh"], &["secret"], &[("--body", Takes::Word), ("-b", Takes::Word)]),
    tool(&["fly", "flyctl", "heroku"], &["secrets", "config:set"], &[("=", Takes::Assigned)]),
    tool(&["k3s", "rke2"], &["agent", "server"], &[("-t", Takes::Word)]),
    tool(&["gitlab-runner"], &["register"], &[("-r", Takes::Word)]),
    tool(&["SUSEConnect", "suseconnect", "transactional-update"], &[], &[("-r", Takes::Word)]),
    tool(&["subscription-manager", "rhc", "rhnreg_ks"], &[], &[("-p", Takes::Word), ("-a", Takes::Word)]),
    tool(&["ipa-client-install", "ipa-replica-install"], &[], &[("-w", Takes::Word)]),
    tool(&["ipa-server-install"], &[], &[("-p", Takes::Word), ("-a", Takes::Word)]),
    tool(&["lftp"], &[], &[("-u", Takes::Comma)]),
    tool(&["ncftp", "ncftpget", "ncftpput"], &[], &[("-p", Takes::Word)]),
    tool(&["netbird"], &[], &[("-k", Takes::Word)]),
    tool(&["zerotier-cli"], &[], &[("-T", Takes::Joined), ("-T", Takes::Word)]),
    tool(&["falconctl"], &[], &[("--cid", Takes::Word)]),
    tool(&["nsupdate", "dig", "delv", "knsupdate", "kdig"], &[], &[("-y", Takes::LastColon)]),
    tool(
        &["createUser", "net-snmp-create-v3-user"],
        &[],
        &[
            ("MD5", Takes::Word),
            ("SHA", Takes::Word),
            ("SHA-224", Takes::Word),
            ("SHA-256", Takes::Word),
            ("SHA-384", Takes::Word),
            ("SHA-512", Takes::Word),
            ("DES", Takes::Word),
            ("AES", Takes::Word),
            ("AES128", Takes::Word),
            ("AES192", Takes::Word),
            ("AES256", Takes::Word),
            ("-A", Takes::Word),
            ("-X", Takes::Word),
        ],
    ),
    last(&["pro", "ua", "ubuntu-advantage"], &["attach"]),
    last(&["juju"], &["register"]),
    last(&["cloudflared"], &["install"]),
    tool(&["mysqladmin", "mariadb-admin"], &[], &[("password", Takes::Word)]),
    tool(&["pcs"], &["auth"], &[("-p", Takes::Word)]),
    tool(
        &[
            "fence_ipmilan",
            "fence_idrac",
            "fence_ilo4",
            "fence_ilo5",
            "fence_apc",
            "fence_vmware_rest",
            "racadm",
        ],
        &[],
        &[("-p", Takes::Word)],
    ),
    tool(&["slappasswd"], &[], &[("-s", Takes::Word)]),
    tool(&["kadmin"], &[], &[("-w", Takes::Word), ("-pw", Takes::Word)]),
    // A line of FRR's and Cisco's configuration.
    tool(&["message-digest-key"], &[], &[("md5", Takes::Word)]),
    Tool { last: Some(Takes::LastColon), ..tool(&["etcdctl"], &["user"], &[]) },
    last(&["openssl"], &["passwd"]),
    Tool {
        last: Some(Takes::First),
        ..tool(&["mkpasswd"], &["-m", "--method", "--method=", "-5", "-S", "--salt", "--salt=", "-R"], &[])
    },
    last(&["mosquitto_passwd"], &["-b"]),
    last(&["rclone"], &["obscure", "reveal"]),
    Tool { last: Some(Takes::Path), ..tool(&["microk8s", "microk8s.join"], &["join"], &[]) },
];

/// Commands that read a secret from what is piped into them, or from `<<<`.
pub(super) const READERS: [&str; 20] = [
    "debconf-set-selections",
    "net ads join",
    "preshared-key",
    "private-key",
    "secret create",
    "chpasswd",
    "passwd",
    "smbpasswd",
    "sudo -S",
    "--password-stdin",
    "--stdin",
    "--with-token",
    "cryptsetup",
    "kinit",
    "adcli",
    "realm join",
    "gpg --batch",
    "--passphrase-fd",
    "zfs load-key",
    "-pass stdin",
];
