# shellcheck shell=bash
# Sourced by `rig`: real nodes: a containerd, a kubelet under a supervisor that starts it again as its systemd unit would, and a
# real `kubeadm join`. Several fit on one machine because each has a mount and a UTS namespace of its own (node-inside.sh).
#
# Data: $state/nodes/NAME holds everything of a node: etc-kubernetes/ and var-lib-kubelet/ (what it sees at the usual paths), cri.sock,
# ports, log/. Its processes are the parts node-NAME, node-NAME.containerd and node-NAME.kubelet. Nodes share the network, so they
# have one address between them; each has a machine id and a boot id of its own. No image can be pulled without a registry: pods
# do not run, nodes do. Needs root.

node_paths="/etc/kubernetes /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /opt/containerd /run/containerd"

node_command() {
  local verb=${1:-}; [ $# = 0 ] || shift
  case $verb in
    up) node_up "$@" ;;
    down) [ $# -ge 1 ] || die "rig node down wants a name."; node_down "$1" "${2:-}" ;;
    reboot) [ $# = 1 ] || die "rig node reboot wants a name."; node_must_be_up "$1"; node_reboot "$1" ;;
    list) node_list ;;
    exec) node_exec "$@" ;;
    restart-kubelet|stop-kubelet|start-kubelet) [ $# = 1 ] || die "rig node $verb wants a name."; node_must_be_up "$1"; "kubelet_${verb%-kubelet}" "$1" ;;
    *) die "\"rig node $verb\" is not a command." \
        "rig node up NAME [--no-join] [--no-wait] [--spoil WHAT] [--token T] [--ca-hash H] [--provider-id ID | --cloud-provider external]" \
        "rig node down NAME [--forget] | reboot NAME | list | exec NAME COMMAND...   rig node restart-kubelet|stop-kubelet|start-kubelet NAME" ;;
  esac
}
node_must_be_up() { running "node-$1" || die "the real node \"$1\" is not up in rig \"$name\"." "rig node up $1 --name $name" "Those there are: rig node list"; }

node_up() {
  local node='' join=1 wait=1 spoil='' token='' hash='' extra=() dir began=$EPOCHREALTIME server
  while [ $# -gt 0 ]; do
    case $1 in
      --no-join) join='' ;; --no-wait) wait='' ;;
      --spoil) spoil=${2:-}; spoil_check "$spoil"; shift ;;
      --token) token=$2; shift ;; --ca-hash) hash=$2; shift ;;
      --provider-id) extra+=("provider-id=$2"); shift ;; --cloud-provider) extra+=("cloud-provider=$2"); shift ;;
      -*) die "rig node up does not know $1." ;;
      *) node=$1 ;;
    esac
    shift
  done
  [[ $node =~ ^[a-z0-9]([a-z0-9.-]{0,24}[a-z0-9])?$ ]] || die "\"$node\" cannot name a node here." "Use 1 to 26 of a-z, 0-9, - and dots."
  [ "$(id -u)" = 0 ] || die "a real node needs root (namespaces, containerd, cgroups)." "Run rig as root, or use simulated nodes: rig machine node NAME"
  [ -s "$state/admin.conf" ] || die "a real node needs the part kubernetes, which rig \"$name\" does not have."
  ! running "node-$node" || die "the node \"$node\" is up already." "rig node down $node --name $name"
  unshare -m -u true 2>/dev/null || die "this machine does not let root make mount and UTS namespaces (unshare -m -u), which a real node needs." "In a container: run it privileged. Or use simulated nodes: rig machine node NAME"
  build_for node
  [ -s "$state/ca-hash" ] || make_join_ready
  dir=$state/nodes/$node
  rm -rf "$dir"; mkdir -p "$dir"/{var-lib-kubelet,etc-kubernetes,patches,log,bin,cni,sysctl}
  "$python" "$root/lib/ports.py" "$home" "$dir/ports" KUBELET_PORT HEALTHZ_PORT || die "no free ports could be reserved for the node."
  if [ ${#extra[@]} = 0 ]; then       # a machine of that name in the cloud: the kubelet says so, as on a real one
    if running openstack-cloud-controller-manager || running aws-cloud-controller-manager; then extra+=(cloud-provider=external)
    elif server=$(server_id "$node") && [ -n "$server" ]; then extra+=("provider-id=openstack:///$server"); fi
  fi
  write_node_files "$node" "$dir" "${token:-$("$(program kubeadm)" token create --kubeconfig "$state/admin.conf" 2>/dev/null || cat "$state/bootstrap-token")}" "${hash:-$(<"$state/ca-hash")}" ${extra[@]+"${extra[@]}"}
  [ -z "$spoil" ] || spoil_before "$spoil"
  # Until this node's process is written down, a process that takes the last other node down would take the paths away again.
  exec 9>"$home/.paths-lock"; flock 9
  make_node_paths
  node_boot "$node"
  exec 9>&-
  await "node-$node" 30 test -S "$dir/cri.sock"
  describe
  if [ -n "$spoil" ]; then spoil_running "$spoil"; spoil_join "$spoil"; return 0; fi
  [ -n "$join" ] || { say "node $node is up and has not joined: rig node exec $node kubeadm join --config $dir/join.yaml"; return; }
  if [ -z "$wait" ]; then node_exec "$node" bash -c "kubeadm join --config '$dir/join.yaml' >>'$dir/log/join.log' 2>&1 </dev/null &"; say "node $node joins; watch it: rig logs --name $name nodes/$node/log/join.log"; return; fi
  node_exec "$node" kubeadm join --config "$dir/join.yaml" >>"$dir/log/join.log" 2>&1 </dev/null ||
    { tail -n 8 "$dir/log/join.log" >&2; die "kubeadm join of $node failed; the end of what it said is above." "The rest: rig logs --name $name nodes/$node/log/join.log, and nodes/$node/log/kubelet.log"; }
  await "node-$node" 60 node_ready "$node"
  describe
  say "node $node joined and is Ready after $(since "$began")"
}
node_boot() { start "node-$1" unshare -m -u bash "$root/lib/node-inside.sh" "$state" "$1" "$(dirname "$(program kubelet)")" "$root/lib"; }
node_reboot() { # NODE: as a power cut and a boot: all that runs in it ends at once, its disk stays, its boot id is another one
  local node=$1
  node_kill "$node"
  rm -f "$state/nodes/$node/cri.sock"
  node_boot "$node"
  await "node-$node" 30 test -S "$state/nodes/$node/cri.sock"
  describe
  say "node $node was rebooted; its own programs have to be started as its units would: rig node exec $node COMMAND"
}
node_ready() { [ "$(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
server_id() {
  [ -s "$state/cloud.json" ] && "$python" "$root/lib/machine.py" list --json 2>/dev/null | "$python" -c 'import json,sys
for s in json.load(sys.stdin):
    if s["name"] == sys.argv[1]: print(s["id"]); break' "$1"
}

write_node_files() { # NODE DIR TOKEN CA_HASH [KUBELET_FLAG=VALUE...]
  local node=$1 dir=$2 token=$3 hash=$4 flag KUBELET_PORT HEALTHZ_PORT; shift 4
  # shellcheck disable=SC1091
  . "$dir/ports"
  cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd"
state = "$dir/containerd-run"
[grpc]
  address = "$dir/cri.sock"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$dir/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "$dir/opt"
END
  echo '{"cniVersion":"0.4.0","name":"rig","plugins":[{"type":"ptp","ipam":{"type":"host-local","subnet":"198.19.254.0/24"}}]}' >"$dir/cni/10-rig.conflist"
  cat >"$dir/patches/kubeletconfiguration.yaml" <<END
address: 127.0.0.1
port: $KUBELET_PORT
healthzBindAddress: 127.0.0.1
healthzPort: $HEALTHZ_PORT
cgroupRoot: /$(node_cgroup "$node")
evictionHard: {memory.available: "10Mi"}   # how full this machine's disks are says nothing of the node
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false   # nodes share the machine's network: leave its tables alone
END
  { cat <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: "127.0.0.1:$API_PORT", token: "$token", caCertHashes: ["$hash"]}}
patches: {directory: "$dir/patches"}
nodeRegistration:
  name: $node
  criSocket: "unix://$dir/cri.sock"
  ignorePreflightErrors: [all]
  taints: []
END
    [ $# = 0 ] || echo "  kubeletExtraArgs:"
    for flag in "$@"; do echo "  - {name: ${flag%%=*}, value: \"${flag#*=}\"}"; done
  } >"$dir/join.yaml"
}

node_cgroup() { printf 'reveille-rig-%s-%s' "$name" "$1"; }
# Mount points have to exist outside. Those that were not there are remembered, and removed when the last node of all rigs is gone.
make_node_paths() {
  local p parent
  for p in $node_paths; do
    [ -d "$p" ] && continue
    parent=$(dirname "$p"); [ -d "$parent" ] || continue
    mkdir "$p" 2>/dev/null && echo "$p" >>"$home/.made-directories"
  done
}
forget_node_paths() ( # in a shell of its own, whose end gives the lock back
  exec 9>"$home/.paths-lock"; flock 9
  [ -s "$home/.made-directories" ] && ! compgen -G "$home/*/pid/node-*" >/dev/null || exit 0
  while read -r p; do rmdir "$p" 2>/dev/null; done <"$home/.made-directories"
  rm -f "$home/.made-directories"
)

node_exec() { # NODE COMMAND...: inside the node's namespaces, with the programs of the rig and a systemctl for its kubelet on PATH
  local node=$1 dir=$state/nodes/$1 pid; shift
  pid=$(pid_of "node-$node") || node_must_be_up "$node"
  nsenter -t "$pid" -m -u env "PATH=$dir/bin:$bin:$PATH" "REVEILLE_RIG_PROCESS=$state" "RIG_NODE=$node" "RIG_NODE_DIR=$dir" "$@"
}

kubelet_signal() { local pid; pid=$(pid_of "node-$1.kubelet") && kill -TERM "$pid"; }
kubelet_stop() {
  local KUBELET_PORT
  : >"$state/nodes/$1/kubelet-off"; kubelet_signal "$1"
  while running "node-$1.kubelet"; do sleep 0.05; done
  # Its threads hold its port a little longer than its first one lives; what takes the port next must find it free.
  # shellcheck disable=SC1090,SC1091
  . "$state/nodes/$1/ports"
  for _ in {1..100}; do
    (: <>"/dev/tcp/127.0.0.1/$KUBELET_PORT") 2>/dev/null || { say "the kubelet of $1 is stopped"; return 0; }
    sleep 0.1
  done
  die "the kubelet of $1 has ended, and its port $KUBELET_PORT still answers." "Who listens there: ss -ltnp"
}
kubelet_start() { rm -f "$state/nodes/$1/kubelet-off"; await "node-$1" 15 running "node-$1.kubelet"; say "the kubelet of $1 is started"; }
kubelet_restart() {
  local before; before=$(pid_of "node-$1.kubelet"); rm -f "$state/nodes/$1/kubelet-off"; kubelet_signal "$1"
  # shellcheck disable=SC2317,SC2329
  restarted() { running "node-$1.kubelet" && [ "$(pid_of "node-$1.kubelet")" != "$before" ]; }
  await "node-$1" 15 restarted "$1"; say "the kubelet of $1 is restarted"
}

node_list() {
  local d node
  printf '%-24s %-9s %-9s %s\n' NODE MACHINE KUBELET KUBERNETES
  for d in "$state"/nodes/*/; do
    [ -d "$d" ] || continue
    node=$(basename "$d")
    printf '%-24s %-9s %-9s %s\n' "$node" "$(running "node-$node" && echo runs || echo down)" "$(running "node-$node.kubelet" && echo runs || echo down)" \
      "$(if node_ready "$node"; then echo Ready; elif kubectl get node "$node" >/dev/null 2>&1; then echo "not Ready"; else echo "no such node"; fi)"
  done
}

node_down() { # NODE [--forget]: the machine is gone, as when its power fails; its Node object stays unless it is to be forgotten
  local node=$1
  [ -d "$state/nodes/$node" ] || die "there is no real node \"$node\" in rig \"$name\"." "Those there are: rig node list"
  node_end "$node"
  [ "${2:-}" != --forget ] || kubectl delete node "$node" --ignore-not-found >/dev/null
  forget_node_paths; describe
  say "node $node is down$([ "${2:-}" = --forget ] || echo "; its Node object stays (rig node down $node --forget deletes that, too)")"
}
nodes_lost() { # MACHINE...: their servers were deleted, so what ran on them has ended, too
  local node
  for node in "$@"; do [ ! -d "$state/nodes/$node" ] || node_down "$node"; done
}
node_end() { # its mounts are in its own namespace and end with its last process
  local node=$1 g
  node_kill "$node"
  for g in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -d "$g/$(node_cgroup "$node")" ] && find "$g/$(node_cgroup "$node")" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  rm -rf "${state:?}/nodes/$node"
}
node_kill() {
  stop_parts "node-$1" "node-$1.kubelet" "node-$1.containerd"
  sweep_node "$1"
}
sweep_node() { # what else runs in it: shims, commands of `node exec`
  local pid
  # shellcheck disable=SC2013
  for pid in $(grep -lszxF "RIG_NODE=$1" /proc/[0-9]*/environ | cut -d/ -f3); do
    marked "$pid" && kill -KILL "$pid" 2>/dev/null
  done
}
nodes_down_all() {
  local d
  for d in "$state"/nodes/*/; do [ ! -d "$d" ] || node_end "$(basename "$d")"; done
  forget_node_paths
}
