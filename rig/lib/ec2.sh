# shellcheck shell=bash
# Sourced by `rig`: an EC2-compatible API (moto's server, from PyPI) and the real AWS cloud controller.
#
# Data: moto keeps everything in its memory, so that a stopped one has forgotten all; its region is us-east-1. A VPC, a subnet, a group and
# an instance role are made when it starts (ec2/instance.py). Clients and the cloud controller reach it through the fault proxy.
# moto checks no signature and knows no delay: what AWS does there, faults do (proxy_ec2.py). What moto leaves out of an instance's
# life, ec2/server.py adds around it. Not here: instances (ec2/instance.py).

ec2=$root/ec2
ec2_venv=$cache/ec2-venv
export AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE AWS_SECRET_ACCESS_KEY=rig AWS_EC2_METADATA_DISABLED=true

build_ec2() {
  local began stamp interpreter
  need curl "apt-get install curl"
  stamp=$(sha256sum <"$ec2/requirements.lock" | cut -c1-16)
  [ "$(cat "$ec2_venv/.complete" 2>/dev/null)" != "$stamp" ] || return 0
  exec 8>"$cache/.build-lock"; flock 8
  if [ "$(cat "$ec2_venv/.complete" 2>/dev/null)" != "$stamp" ]; then
    began=$EPOCHREALTIME
    interpreter=$(venv_interpreter) || exit 1
    "$interpreter" -c 'import ensurepip' 2>/dev/null || install_packages "ec2 (its virtual environment)" python3-venv ca-certificates
    say "installing moto from PyPI ($(grep -c == "$ec2/requirements.lock") packages) ..."
    install_venv "$interpreter" "$ec2_venv" "$ec2/requirements.lock" ||
      die "moto could not be installed into $ec2_venv; see above." "It comes from PyPI by pip; is it reachable?"
    printf '%s' "$stamp" >"$ec2_venv/.complete"
    say "installed moto in $(since "$began")"
  fi
  exec 8>&-
}
start_ec2() {
  RIG_STATE=$state start ec2 "$ec2_venv/bin/python" "$ec2/server.py" -H 127.0.0.1 -p "$EC2_PORT"
  await ec2 30 curl -sf -o /dev/null "http://127.0.0.1:$EC2_PORT/moto-api/"
  instance_command seed >/dev/null || die "the network of the instances could not be made." "See above; rig logs --name $name ec2"
}
instance_command() { env -u PYTHONDONTWRITEBYTECODE "$ec2_venv/bin/python" "$ec2/instance.py" "$@"; }

start_awsccm() { # the real cloud controller: initialises nodes, deletes those whose instance is gone
  [ -s "$state/admin.conf" ] && [ -s "$state/ec2.json" ] ||
    die "the AWS cloud controller needs the parts kubernetes and ec2; rig \"$name\" lacks one." "rig up --name $name kubernetes ec2 awsccm"
  "$python" -c 'import json, sys
e = json.load(open(sys.argv[1]))
print("[Global]\nZone=%s\nVPC=%s\nSubnetID=%s\nKubernetesClusterID=rig\nDisableSecurityGroupIngress=true" % (e["zone"], e["vpc"], e["subnet"]))' "$state/ec2.json" >"$state/aws.conf"
  AWS_ENDPOINT_URL=http://127.0.0.1:$PROXY_EC2_PORT start aws-cloud-controller-manager "$(program aws-cloud-controller-manager)" --cloud-provider aws \
    --cloud-config "$state/aws.conf" --kubeconfig "$state/cloud-controller.conf" --leader-elect=false --cluster-name rig \
    --cluster-cidr "$cluster_cidr" --allocate-node-cidrs=true --configure-cloud-routes=false \
    --controllers=cloud-node-controller,cloud-node-lifecycle-controller --node-monitor-period 2s \
    --bind-address 127.0.0.1 --secure-port 0 --webhook-bind-address 127.0.0.1 --webhook-secure-port 0 -v 2
  await aws-cloud-controller-manager 60 grep -q "Started \"cloud-node" "$state/log/aws-cloud-controller-manager.log"
}
