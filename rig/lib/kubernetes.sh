# shellcheck shell=bash
# Sourced by `rig`: the control plane (etcd, kube-apiserver, kube-controller-manager), made ready for real `kubeadm join`s, and
# the two programs that work on it: kwok (stands in for the kubelets of simulated nodes) and the OpenStack cloud controller.
#
# Data: certificates are made once per rig in $state/pki; etcd keeps its data in $state/etcd; kubeconfigs are admin.conf (TLS,
# straight to the API server) and proxy.conf (through the fault proxy). Not here: nodes (node.sh).

cluster_cidr=198.19.0.0/16

# Programs a user has already (the KUBEBUILDER_ASSETS convention) are taken from there.
program() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then printf '%s' "$KUBEBUILDER_ASSETS/$1"; else printf '%s' "$bin/$1"; fi
}
kubectl() { "$(program kubectl)" --kubeconfig "$state/admin.conf" "$@"; }

make_key() { openssl ecparam -genkey -name prime256v1 -noout -out "$1" 2>/dev/null; }
make_certificate() { # FILE_STEM SUBJECT [SUBJECT_ALT_NAMES]
  # An extension makes openssl issue version 3; version 1 is not taken by every TLS library.
  local extensions="extendedKeyUsage=serverAuth,clientAuth${3:+$'\n'subjectAltName=$3}"
  make_key "$state/pki/$1.key"
  openssl req -new -key "$state/pki/$1.key" -subj "$2" -out "$state/pki/$1.csr" 2>/dev/null
  openssl x509 -req -in "$state/pki/$1.csr" -CA "$state/pki/ca.crt" -CAkey "$state/pki/ca.key" -CAcreateserial -days 30 \
    -out "$state/pki/$1.crt" -extfile <(echo "$extensions") 2>/dev/null
}
write_kubeconfig() { # FILE SERVER CERTIFICATE_STEM (none: no credentials)
  local cluster="server: \"$2\"" user="{}"
  [ -z "${3:-}" ] || { cluster="$cluster, certificate-authority: \"$state/pki/ca.crt\""
    user="{client-certificate: \"$state/pki/$3.crt\", client-key: \"$state/pki/$3.key\"}"; }
  cat >"$1" <<END
apiVersion: v1
kind: Config
current-context: rig
contexts: [{name: rig, context: {cluster: rig, user: rig}}]
clusters: [{name: rig, cluster: {$cluster}}]
users: [{name: rig, user: $user}]
END
}

kubernetes_files() {
  local api=https://127.0.0.1:$API_PORT
  make_key "$state/pki/ca.key"; make_key "$state/pki/sa.key"
  openssl req -x509 -key "$state/pki/ca.key" -subj /CN=rig-ca -days 30 -out "$state/pki/ca.crt" 2>/dev/null ||
    die "openssl could not make the certificate authority in $state/pki."
  make_certificate apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
  make_certificate admin /O=system:masters/CN=rig-admin
  make_certificate controller-manager /CN=system:kube-controller-manager
  make_certificate cloud-controller /O=system:masters/CN=system:cloud-controller-manager
  write_kubeconfig "$state/admin.conf" "$api" admin
  write_kubeconfig "$state/proxy.conf" "http://127.0.0.1:$PROXY_KUBE_PORT"
  write_kubeconfig "$state/controller-manager.conf" "$api" controller-manager
  write_kubeconfig "$state/cloud-controller.conf" "$api" cloud-controller
}

start_etcd() {
  start etcd "$(program etcd)" --data-dir "$state/etcd" --unsafe-no-fsync --log-level error --listen-peer-urls http://127.0.0.1:0 \
    --listen-client-urls "http://127.0.0.1:$ETCD_PORT" --advertise-client-urls "http://127.0.0.1:$ETCD_PORT"
}
start_kube_apiserver() {
  # Every write with the client that made it, and no read: a few lines for each scenario, whichever client writes.
  cat >"$state/audit.yaml" <<'END'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, resources: [{group: coordination.k8s.io}, {group: "", resources: [events]}, {group: events.k8s.io}]}
  - {level: Metadata, verbs: [create, update, patch, delete]}
END
  start kube-apiserver "$(program kube-apiserver)" --etcd-servers "http://127.0.0.1:$ETCD_PORT" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$API_PORT" --endpoint-reconciler-type none \
    --tls-cert-file "$state/pki/apiserver.crt" --tls-private-key-file "$state/pki/apiserver.key" --client-ca-file "$state/pki/ca.crt" \
    --service-account-key-file "$state/pki/sa.key" --service-account-signing-key-file "$state/pki/sa.key" \
    --service-account-issuer https://rig --service-cluster-ip-range 10.0.0.0/24 --authorization-mode Node,RBAC \
    --audit-policy-file "$state/audit.yaml" --audit-log-path "$state/audit.log" --audit-log-maxsize 50 --audit-log-maxbackup 1 \
    --enable-bootstrap-token-auth --enable-admission-plugins NodeRestriction --allow-privileged
  # Whether its certificate would be believed is not asked here: a fault may have given it another.
  await kube-apiserver 90 curl -skf --cert "$state/pki/admin.crt" --key "$state/pki/admin.key" "https://127.0.0.1:$API_PORT/readyz"
}
start_kube_controller_manager() {
  start kube-controller-manager "$(program kube-controller-manager)" --kubeconfig "$state/controller-manager.conf" \
    --bind-address 127.0.0.1 --secure-port 0 --leader-elect=false --use-service-account-credentials \
    --service-account-private-key-file "$state/pki/sa.key" --root-ca-file "$state/pki/ca.crt" \
    --cluster-signing-cert-file "$state/pki/ca.crt" --cluster-signing-key-file "$state/pki/ca.key" --cluster-name rig \
    --controllers "${RIG_CONTROLLERS:-*,bootstrap-signer-controller,token-cleaner-controller}" \
    --allocate-node-cidrs --cluster-cidr "$cluster_cidr" --node-monitor-grace-period "${RIG_NODE_GRACE:-50s}"
}
# What `kubeadm init` leaves in a cluster for the joins to come: kubeadm-config, kubelet-config, cluster-info, RBAC, a token.
make_join_ready() {
  local phase kubeadm; kubeadm=$(program kubeadm)
  [ -x "$kubeadm" ] || return 0     # a control plane without real nodes does not need it
  cat >"$state/kubeadm.yaml" <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10, bindPort: $API_PORT}   # kubeadm refuses a loopback address here; nothing dials it
nodeRegistration: {criSocket: "unix://$state/cri.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $("$kubeadm" version -o short)
controlPlaneEndpoint: 127.0.0.1:$API_PORT
certificatesDir: $state/pki
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
END
  for phase in "upload-config kubeadm" "upload-config kubelet" bootstrap-token; do
    # shellcheck disable=SC2086
    "$kubeadm" init phase $phase --config "$state/kubeadm.yaml" --kubeconfig "$state/admin.conf" >>"$state/log/kubeadm-init.log" 2>&1 ||
      { tail -n 5 "$state/log/kubeadm-init.log" >&2; die "kubeadm init phase $phase failed; see above." "All of it: rig logs --name $name kubeadm-init"; }
  done
  "$kubeadm" token list --kubeconfig "$state/admin.conf" -o jsonpath='{.token}{"\n"}' | head -n 1 >"$state/bootstrap-token"
  openssl x509 -in "$state/pki/ca.crt" -pubkey -noout | openssl pkey -pubin -outform der | sha256sum | sed 's/ .*//; s/^/sha256:/' >"$state/ca-hash"
}
start_kubernetes() {
  [ -s "$state/pki/ca.crt" ] || kubernetes_files
  running etcd || start_etcd
  running kube-apiserver || start_kube_apiserver
  running kube-controller-manager || start_kube_controller_manager
  [ -s "$state/ca-hash" ] || make_join_ready
}

start_kwok() { # manages only nodes annotated kwok.x-k8s.io/node=fake: never a real kubelet's
  [ -s "$state/admin.conf" ] || die "kwok needs the part kubernetes, which rig \"$name\" does not have." "rig up --name $name kubernetes kwok"
  kubectl apply -f "$root/templates/silent-leases.yaml" >/dev/null || die "the policy for silent kubelets could not be set." "See above."
  start kwok "$(program kwok)" --kubeconfig "$state/admin.conf" -c "$root/templates/kwok-stages.yaml" \
    --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake --node-lease-duration-seconds 40 --server-address "127.0.0.1:$KWOK_PORT"
  await kwok 30 curl -sf -o /dev/null "http://127.0.0.1:$KWOK_PORT/healthz"
}

start_occm() { # the real cloud controller: initialises nodes, deletes those whose server is gone, writes pod routes
  # RIG_OCCM_PROJECT=other: with another project's credentials, so that no machine of this one exists for it
  local project=${RIG_OCCM_PROJECT:-demo}
  [ -s "$state/admin.conf" ] && [ -s "$state/cloud.json" ] ||
    die "the OpenStack cloud controller needs the parts kubernetes and openstack; rig \"$name\" lacks one." "rig up --name $name kubernetes openstack occm"
  cat >"$state/cloud.conf" <<END
[Global]
auth-url=http://127.0.0.1:$KEYSTONE_PORT/v3
username=$project
password=$project
tenant-name=$project
domain-name=Default
region=RegionOne
os-endpoint-type=internal
[Route]
router-id=$("$python" -c 'import json,sys; print(json.load(open(sys.argv[1]))["router"])' "$state/cloud.json")
[LoadBalancer]
enabled=false
END
  start openstack-cloud-controller-manager "$(program openstack-cloud-controller-manager)" --cloud-provider openstack --cloud-config "$state/cloud.conf" \
    --kubeconfig "$state/cloud-controller.conf" --leader-elect=false --cluster-name rig --cluster-cidr "$cluster_cidr" \
    --allocate-node-cidrs=true --configure-cloud-routes=true \
    --controllers=cloud-node-controller,cloud-node-lifecycle-controller,node-route-controller \
    --bind-address 127.0.0.1 --secure-port 0 --webhook-bind-address 127.0.0.1 --webhook-secure-port 0 -v 2
  await openstack-cloud-controller-manager 60 grep -q "Started \"cloud-node" "$state/log/openstack-cloud-controller-manager.log"
}
