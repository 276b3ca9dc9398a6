//! Commands that take a secret as an argument, as people and first-boot scripts write them.

use crate::canaries::{Canary, Of, hash};
use crate::places::OF_COMMANDS;

/// A tool's use, and the command with `{s}` for the secret.
const COMMANDS: [(&str, &str); 84] = [
    ("curl -u", "curl -sf -u admin:{s} https://registry.example/v2/"),
    ("curl --user", "curl --user 'admin:{s}' https://registry.example/v2/"),
    ("curl --user=", "curl --user=admin:{s} https://registry.example/v2/"),
    ("curl proxy", "curl -x http://proxy:3128 --proxy-user svc:{s} https://get.k3s.io"),
    ("curl -H bearer", "curl -H 'Authorization: Bearer {s}' https://api.example"),
    ("curl -H private token", "curl --header \"PRIVATE-TOKEN: {s}\" https://git.example/api"),
    ("curl -H api key", "curl -H \"X-Api-Key: {s}\" https://api.example"),
    ("curl -H vault", "curl -H X-Vault-Token:{s} https://vault.example/v1/x"),
    ("curl cookie", "curl -b 'session={s}' https://api.example"),
    ("curl --cookie", "curl --cookie \"SID={s}\" https://api.example"),
    ("curl data", "curl -d 'username=admin&password={s}' https://login.example"),
    ("curl json", "curl -d '{\"auth\":{\"password\":\"{s}\"}}' https://keystone.example"),
    ("curl url", "curl https://admin:{s}@nexus.example/x.tgz"),
    ("wget password", "wget --user=admin --password={s} https://nexus.example/x.tgz"),
    ("wget header", "wget --header='Authorization: token {s}' https://git.example/x"),
    ("httpie", "http -a admin:{s} GET https://api.example"),
    ("crictl creds", "crictl pull --creds robot:{s} registry.example/pause:3.9"),
    ("crictl auth", "crictl pull --auth {s} registry.example/pause:3.9"),
    ("ctr user", "ctr -n k8s.io images pull --user robot:{s} registry.example/pause:3.9"),
    ("ctr -u", "ctr images pull -u robot:{s} registry.example/pause:3.9"),
    ("nerdctl login", "nerdctl login -u robot -p {s} registry.example"),
    ("docker login", "docker login -u robot -p {s} registry.example"),
    ("docker login long", "docker login --username robot --password {s} registry.example"),
    ("docker login stdin", "echo {s} | docker login --username robot --password-stdin registry.example"),
    ("docker login stdin, quoted", "echo \"{s}\" | docker login -u robot --password-stdin registry.example"),
    ("podman login", "podman login -u robot -p {s} registry.example"),
    ("podman creds", "podman pull --creds=robot:{s} registry.example/x"),
    ("skopeo", "skopeo copy --src-creds robot:{s} docker://a/x docker://b/x"),
    ("skopeo dest", "skopeo copy --dest-creds=robot:{s} docker://a/x docker://b/x"),
    ("buildah", "buildah push --creds robot:{s} x docker://b/x"),
    ("helm login", "helm registry login -u robot -p {s} registry.example"),
    ("helm repo", "helm repo add x https://charts.example --username robot --password {s}"),
    ("crane", "crane auth login registry.example -u robot -p {s}"),
    ("oras", "oras login -u robot -p {s} registry.example"),
    ("sshpass", "sshpass -p {s} ssh root@10.0.0.5 hostname"),
    ("sshpass joined", "sshpass -p{s} scp x root@10.0.0.5:/tmp/"),
    ("sshpass quoted", "sshpass -p '{s}' ssh root@10.0.0.5"),
    ("sshpass env", "SSHPASS={s} sshpass -e ssh root@10.0.0.5"),
    ("chpasswd echo", "echo root:{s} | chpasswd"),
    ("chpasswd echo quoted", "echo \"ubuntu:{s}\" | sudo chpasswd"),
    ("chpasswd here", "chpasswd <<< 'root:{s}'"),
    ("chpasswd printf", "printf 'root:%s' {s} | chpasswd"),
    ("passwd stdin", "echo {s} | passwd --stdin root"),
    ("passwd twice", "echo -e \"{s}\\n{s}\" | passwd ubuntu"),
    ("sudo -S", "echo '{s}' | sudo -S apt-get update"),
    ("useradd", "useradd -m -p {s} -s /bin/bash ubuntu"),
    ("usermod", "usermod -p '{s}' root"),
    ("mysql joined", "mysql -u root -p{s} -e 'select 1'"),
    ("mysqldump", "mysqldump --user=root --password={s} db"),
    ("psql url", "psql postgresql://app:{s}@db.example:5432/app"),
    ("psql env", "PGPASSWORD={s} psql -h db.example -U app"),
    ("mongosh", "mongosh -u root -p {s} --authenticationDatabase admin"),
    ("redis-cli", "redis-cli -h r.example -a {s} ping"),
    ("ldapsearch", "ldapsearch -x -D cn=admin,dc=x -w {s} -b dc=x"),
    ("ipmitool", "ipmitool -I lanplus -H 10.9.0.4 -U admin -P {s} power status"),
    ("snmpwalk", "snmpwalk -v3 -u x -l authPriv -A {s} -x AES 10.9.0.4"),
    ("smbclient", "smbclient //srv/share -U user%{s}"),
    ("mount cifs", "mount -t cifs -o username=svc,password={s},uid=0 //srv/share /mnt"),
    ("mount cifs pass", "mount -t cifs //srv/share /mnt -o user=svc,pass={s},vers=3.0"),
    ("htpasswd", "htpasswd -bc /etc/nginx/htpasswd admin {s}"),
    ("openssl pass", "openssl pkcs12 -export -out x.p12 -passout pass:{s}"),
    ("openssl enc", "openssl enc -d -aes-256-cbc -in x -k {s}"),
    ("ssh-keygen", "ssh-keygen -t ed25519 -N {s} -f /root/.ssh/id"),
    ("keytool", "keytool -importcert -storepass {s} -file ca.pem"),
    ("gpg", "gpg --batch --passphrase {s} -d x.gpg"),
    ("zip", "unzip -P {s} x.zip"),
    ("7z", "7z x -p{s} x.7z"),
    ("vault login", "vault login {s}"),
    ("vault token", "VAULT_TOKEN={s} vault kv get secret/x"),
    ("vault unseal", "vault operator unseal {s}"),
    ("consul", "consul members -token={s}"),
    ("etcdctl", "etcdctl --user root:{s} member list"),
    ("tailscale up", "tailscale up --authkey {s} --hostname w-1"),
    ("tailscale up, dash", "tailscale up --auth-key={s}"),
    ("kubeadm join", "kubeadm join 10.0.0.1:6443 --token {s} --discovery-token-unsafe-skip-ca-verification"),
    ("kubeadm certificate key", "kubeadm init --upload-certs --certificate-key {s}"),
    ("k3s agent", "k3s agent --server https://10.0.0.1:6443 --token {s}"),
    ("k3s install", "curl -sfL https://get.k3s.io | K3S_URL=https://10.0.0.1:6443 K3S_TOKEN={s} sh -"),
    ("rke2 install", "INSTALL_RKE2_TYPE=agent RKE2_TOKEN={s} sh install.sh"),
    (
        "rancher agent",
        "sh -s - --server https://rancher.example --label x=y --token {s} --ca-checksum abc --worker",
    ),
    ("kubectl credentials", "kubectl config set-credentials x --token={s}"),
    (
        "kubectl docker secret",
        "kubectl create secret docker-registry x --docker-username=r --docker-password={s}",
    ),
    ("nmcli", "nmcli dev wifi connect home password {s}"),
    ("aws configure", "aws configure set aws_secret_access_key {s}"),
];

const MAKES: [Of; 5] = [Of::Mixed(20), Of::Chosen, Of::Weak, Of::Lower(16), Of::Hex(32)];

/// Every command on six of ten lines.
pub(crate) fn canaries() -> Vec<Canary> {
    let mut all = Vec::new();
    for (form, command) in COMMANDS {
        for (place, line) in OF_COMMANDS {
            let dice = hash(&format!("{form} {place}"));
            if dice % 10 >= 6 {
                continue;
            }
            let secret = MAKES[(dice / 10) as usize % MAKES.len()].draw(&format!("{form}{place}"));
            let text = line.replace('C', &command.replace("{s}", &secret));
            all.push(Canary { form: format!("command {form}"), place, text, secret });
        }
    }
    all
}
