#!/usr/bin/env bash
# The inside of one real node, run in a fresh mount and UTS namespace: `unshare -m -u node-inside.sh STATE NODE BIN LIB`.
#
# Data: puts the node's own directories over the paths that kubeadm and kubelet insist on, and private copies over the kernel
# settings that a kubelet changes, so the machine outside stays as it is. Then runs containerd, and the kubelet again and again while
# no file "kubelet-off" forbids it: what systemd does on a real node. Writes pid/node-NODE.{containerd,kubelet}. Joins nothing.
set -u
state=$1 node=$2 bin=$3 lib=$4
dir=$state/nodes/$node
export REVEILLE_RIG_PROCESS=$state RIG_NODE=$node

fail() { echo "node-inside: $*" >&2; exit 1; }
record() { # PART PID: as rig does
  local line; line=$(<"/proc/$2/stat") || return; line=${line##*) }
  # shellcheck disable=SC2086
  set -- "$1" "$2" $line
  printf '%s %s\n' "$2" "${22}" >"$state/pid/$1"
}

mount --make-rprivate / || fail "the mounts could not be made private"
hostname "$node"
mount --bind "$dir/var-lib-kubelet" /var/lib/kubelet && mount --bind "$dir/etc-kubernetes" /etc/kubernetes || fail "its own /var/lib/kubelet and /etc/kubernetes could not be mounted"
for path in /var/lib/cni /var/log/pods /var/log/containers /opt/containerd /run/containerd; do
  [ ! -d "$path" ] || mount -t tmpfs tmpfs "$path"
done
for setting in net/ipv4/ip_forward vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [ -e "/proc/sys/$setting" ] || continue
  cat "/proc/sys/$setting" >"$dir/sysctl/${setting##*/}"
  [ "$setting" != net/ipv4/ip_forward ] || echo 1 >"$dir/sysctl/ip_forward"    # as on a machine that was prepared
  mount --bind "$dir/sysctl/${setting##*/}" "/proc/sys/$setting"
done
# A machine of its own: an installation's id that stays, and a boot's id that is new each time.
[ -s "$dir/machine-id" ] || tr -d - </proc/sys/kernel/random/uuid >"$dir/machine-id"
cat /proc/sys/kernel/random/uuid >"$dir/boot-id"
[ ! -e /etc/machine-id ] || mount --bind "$dir/machine-id" /etc/machine-id
[ ! -e /var/lib/dbus/machine-id ] || mount --bind "$dir/machine-id" /var/lib/dbus/machine-id
mount --bind "$dir/boot-id" /proc/sys/kernel/random/boot_id || fail "a boot id of its own could not be mounted"
# The machine's own systemd must never hear of this node; the stand-in knows its kubelet only.
cp "$lib/node-systemctl.sh" "$dir/bin/systemctl" && chmod +x "$dir/bin/systemctl"
for real in /usr/bin/systemctl /bin/systemctl; do
  [ ! -e "$real" ] || mount --bind "$dir/bin/systemctl" "$real"
done
cp "$lib/node-kubeadm.sh" "$dir/bin/kubeadm" && chmod +x "$dir/bin/kubeadm"
printf 'state=%q\nnode=%q\n' "$state" "$node" >"$dir/bin/of"

root_group=/reveille-rig-$(basename "$state")-$node
for group in /sys/fs/cgroup/*/; do [ -e "$group/cgroup.procs" ] && [ ! -e "$group/cgroup.controllers" ] && mkdir -p "$group$root_group" 2>/dev/null; done   # cgroup v1
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then mkdir -p "/sys/fs/cgroup$root_group"; fi                                                          # cgroup v2

containerd=''; kubelet=''
# shellcheck disable=SC2317,SC2329
end() { trap - TERM INT; for p in $kubelet $containerd; do kill -TERM "$p" 2>/dev/null; done; wait; exit 0; }
trap end TERM INT
PATH=$bin:$PATH containerd -c "$dir/containerd.toml" >>"$dir/log/containerd.log" 2>&1 & containerd=$!
record "node-$node.containerd" $containerd

while :; do
  if [ -e "$dir/kubelet-off" ] || [ ! -e /var/lib/kubelet/config.yaml ]; then sleep 0.2 & wait $!; continue; fi
  KUBELET_KUBEADM_ARGS=''
  # shellcheck disable=SC1091
  [ ! -f /var/lib/kubelet/kubeadm-flags.env ] || . /var/lib/kubelet/kubeadm-flags.env
  # shellcheck disable=SC2086
  "$bin/kubelet" --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
    --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS >>"$dir/log/kubelet.log" 2>&1 & kubelet=$!
  record "node-$node.kubelet" $kubelet
  wait $kubelet
  sleep 1 & wait $!       # the unit's RestartSec is longer (10 s); a test should not wait that long
done
