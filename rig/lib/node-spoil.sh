# shellcheck shell=bash
# Sourced by `rig`: one thing of a real node or of its join is wrong, so that real kubeadm, kubelet and containerd say what they say
# then. `rig node up NAME --spoil WHAT` breaks it before the join, lets the join run into it, and leaves the node as it is:
# nodes/NAME/log holds what a person would find there.
#
# Data: each spoil changes files in the node's own directory ($dir), or starts a process in it that ends with it. What a whole cluster
# suffers from is a fault (`rig fault`). Nothing here knows what Reveille will say of it.

spoils="wrong-token used-up-token wrong-ca-hash other-address unknown-name closed-port no-tls runtime-down cri-off swap no-cni bad-config bad-flag leftovers port-taken bad-label disk-pressure read-only other-name expired-certificate none"
# Preflight is passed over as on other nodes of the rig, but for what is looked for.
spoil_patience='timeouts: {discovery: 6s, tlsBootstrap: 12s, kubeletHealthCheck: 12s, kubernetesAPICall: 6s}'

spoil_check() { [[ " $spoils " = *" $1 "* ]] || die "\"$1\" is nothing that rig node up --spoil can break." "It can break: $spoils"; }
spoil_edit() { sed -i "$1" "$dir/join.yaml"; }
spoil_endpoint() { spoil_edit "s|apiServerEndpoint: \"[^\"]*\"|apiServerEndpoint: \"$1\"|"; }
spoil_flag() { spoil_edit "s|^  taints: \[\]|  taints: []\n  kubeletExtraArgs:\n  - {name: $1, value: \"$2\"}|"; }
spoil_patch() { echo "$1" >>"$dir/patches/kubeletconfiguration.yaml"; }
spoil_beside() { # COMMAND...: runs beside the node until the node is down
  node_exec "$node" setsid "$@" >>"$dir/beside.log" 2>&1 </dev/null & disown $!
  sleep 0.5
}
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

spoil_before() { # WHAT: before the node's containerd runs
  local port
  spoil_edit "s|^patches:|$spoil_patience\npatches:|"
  case $1 in
    wrong-token) spoil_edit 's|token: "[^"]*"|token: "aaaaaa.0123456789abcdef"|' ;;
    used-up-token) port=$("$(program kubeadm)" token create --ttl 1s --kubeconfig "$state/admin.conf" 2>/dev/null); spoil_edit "s|token: \"[^\"]*\"|token: \"$port\"|"; sleep 3 ;;
    wrong-ca-hash) spoil_edit 's|sha256:[0-9a-f]\{6\}|sha256:000000|' ;;
    unknown-name) spoil_endpoint "api.cluster-7.invalid:6443" ;;
    closed-port) spoil_endpoint "127.0.0.1:1" ;;
    cri-off) sed -i '1a disabled_plugins = ["io.containerd.grpc.v1.cri"]' "$dir/containerd.toml" ;;
    swap) spoil_patch 'failSwapOn: true' ;;
    no-cni) rm -f "$dir"/cni/* ;;
    bad-config) spoil_patch 'evictionPressureTransitionPeriod: soon' ;;
    bad-flag) spoil_flag network-plugin cni ;;
    leftovers) mkdir -p "$dir/etc-kubernetes/pki"; : >"$dir/etc-kubernetes/kubelet.conf"; : >"$dir/etc-kubernetes/pki/ca.crt"
      spoil_edit 's|ignorePreflightErrors: \[all\]|ignorePreflightErrors: [Swap, SystemVerification, Hostname, NumCPU, Mem]|' ;;
    bad-label) spoil_flag node-labels "node-role.kubernetes.io/worker=true" ;;
    disk-pressure) sed -i '/^evictionHard/d' "$dir/patches/kubeletconfiguration.yaml"; spoil_patch 'evictionHard: {nodefs.available: "99%"}' ;;
  esac
}

spoil_running() { # WHAT: containerd runs, nothing has joined yet
  local port KUBELET_PORT
  case $1 in
    other-address) port=$(free_port); spoil_beside socat "TCP-LISTEN:$port,bind=127.0.0.9,reuseaddr,fork" "TCP:127.0.0.1:$API_PORT"; spoil_endpoint "127.0.0.9:$port" ;;
    no-tls) port=$(free_port); spoil_beside "$python" -m http.server "$port" --bind 127.0.0.1; spoil_endpoint "127.0.0.1:$port" ;;
    runtime-down) stop_parts "node-$node.containerd"; spoil_edit 's|ignorePreflightErrors: \[all\]|ignorePreflightErrors: [Swap, SystemVerification, Hostname, NumCPU, Mem]|' ;;
    swap) printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/vda2                               partition\t2097148\t\t0\t\t-2\n' >"$dir/swaps"
      node_exec "$node" mount --bind "$dir/swaps" /proc/swaps ;;
    port-taken) # shellcheck disable=SC1091
      . "$dir/ports"; spoil_beside socat "TCP-LISTEN:$KUBELET_PORT,bind=127.0.0.1,reuseaddr,fork" /dev/null
      # On a machine with other work it may take longer than the kubelet does.
      for _ in $(seq 100); do (: <>"/dev/tcp/127.0.0.1/$KUBELET_PORT") 2>/dev/null && return; sleep 0.1; done
      die "port $KUBELET_PORT of node $node could not be taken." "What socat said: $dir/beside.log" ;;
    read-only) node_exec "$node" mount -o remount,bind,ro /var/lib/kubelet ;;
  esac
}

spoil_joined() { # WHAT: the join is over, one way or the other
  local pem=$dir/var-lib-kubelet/pki/kubelet-client-current.pem subject
  case $1 in
    other-name) sed -i 's|KUBELET_KUBEADM_ARGS="|KUBELET_KUBEADM_ARGS="--hostname-override=another-name |' "$dir/var-lib-kubelet/kubeadm-flags.env"; kubelet_restart "$node" >/dev/null ;;
    expired-certificate)
      kubelet_stop "$node" >/dev/null
      subject="/O=system:nodes/CN=system:node:$node"
      openssl req -new -newkey rsa:2048 -nodes -keyout "$dir/old.key" -subj "$subject" -out "$dir/old.csr" 2>/dev/null
      openssl x509 -req -in "$dir/old.csr" -CA "$state/pki/ca.crt" -CAkey "$state/pki/ca.key" -CAcreateserial -days -1 -out "$dir/old.crt" 2>/dev/null
      rm -f "$pem"; cat "$dir/old.crt" "$dir/old.key" >"$pem"
      rm -f "$dir/kubelet-off" ;;
  esac
}

spoil_join() { # WHAT: the join itself, which is expected to fail
  node_exec "$node" timeout 60 kubeadm join --config "$dir/join.yaml" >>"$dir/log/join.log" 2>&1 </dev/null && spoil_joined "$1"
  say "node $node has been spoiled ($1); what it says: rig logs --name $name nodes/$node/log/join.log, and kubelet.log, containerd.log beside it"
}
