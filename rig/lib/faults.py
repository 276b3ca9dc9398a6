"""Faults by name: break one thing in the rig the way it breaks in the world, and mend it again with --off.

    faults.py                      the list           faults.py NAME [ARGS] [--off]
    faults.py --active             what is broken now faults.py --clear          mend everything
    faults.py --calls [--reset]    what went through the fault proxy

Data: cloud and cluster faults (faults_cloud.py, faults_cluster.py) go through the real APIs; process faults are signals; proxy faults (proxy_faults.py) are armed on
the proxy's control port. What --off has to put back is kept in $RIG_STATE/active-faults.json (fault_kit.py). Nothing here waits until a component notices the fault.
"""
import json
import subprocess
import sys

import faults_cloud  # noqa: F401  (importing it registers its faults)
import faults_cluster  # noqa: F401  (so does this)
import proxy_faults
from fault_kit import CATALOGUE, Act, control, fault, remembered
from machine import NoSuchMachine, Trouble, kubectl, root, set_silent
from osapi import Refused


# --- Kubernetes
@fault('node-delete', 'NODE', 'a person deletes the Node object (cannot be taken back)')
def node_delete(a):
    if a.off:
        raise Trouble('a deleted node is not made again by --off: rig machine node NAME, or rig node restart-kubelet NAME')
    kubectl('delete', 'node', a.argument(), '--wait=false')


@fault('node-silent', 'NODE', 'a simulated node\'s kubelet falls silent: no lease, no heartbeat (real nodes: kubelet-hang, or rig node stop-kubelet)')
def node_silent(a):
    a.recall() if a.off else a.keep()
    set_silent(a.argument(), not a.off)


# --- processes: frozen or ended
def rig(*arguments):
    r = subprocess.run([root + '/rig', *arguments], capture_output=True, text=True)
    if r.returncode:
        raise Trouble(r.stderr.strip())


def process_faults():
    for word, process, what in (('nova', 'nova', 'Nova'), ('neutron', 'neutron', 'Neutron'), ('keystone', 'keystone', 'Keystone'),
                                ('api', 'kube-apiserver', 'kube-apiserver'), ('etcd', 'etcd', 'etcd'),
                                ('controller-manager', 'kube-controller-manager', 'kube-controller-manager'),
                                ('occm', 'openstack-cloud-controller-manager', 'the cloud controller'),
                                ('ec2', 'ec2', 'EC2'),
                                ('awsccm', 'aws-cloud-controller-manager', 'the AWS cloud controller')):
        def hang(a, process=process):
            a.recall() if a.off else a.keep()
            rig('signal', 'CONT' if a.off else 'STOP', process)

        def kill(a, process=process):
            if a.off:
                a.recall()
                return rig('start', process)
            rig('signal', 'KILL', process)
            a.keep()
        CATALOGUE[word + '-hang'] = ('', '%s is frozen: connects, never answers' % what, hang)
        CATALOGUE[word + '-kill'] = ('', '%s is gone: connection refused (--off: started again)' % what, kill)


process_faults()


@fault('kubelet-hang', 'NODE', 'the kubelet of a real node is frozen: no lease, no heartbeat; its containers would run on')
def kubelet_hang(a):
    a.recall() if a.off else a.keep()
    rig('signal', 'CONT' if a.off else 'STOP', 'node-%s.kubelet' % a.argument())


@fault('runtime-hang', 'NODE', 'the containerd of a real node is frozen; its kubelet says NotReady after a while')
def runtime_hang(a):
    a.recall() if a.off else a.keep()
    rig('signal', 'CONT' if a.off else 'STOP', 'node-%s.containerd' % a.argument())


# --- the proxy
def on_proxy(a):
    if a.off:
        return control('DELETE', '/faults/' + a.name)
    names = list(proxy_faults.CATALOGUE[a.name][0])
    if len(a.arguments) > len(names):
        raise Trouble('%s takes %d arguments: %s' % (a.name, len(names), ' '.join(n.upper() for n in names) or 'none'))
    try:
        return control('PUT', '/faults/' + a.name, {n: int(v) for n, v in zip(names, a.arguments)})
    except ValueError:
        raise Trouble('%s takes whole numbers: %s' % (a.name, ' '.join(n.upper() for n in names)))


for proxy_name, (proxy_arguments, proxy_help) in proxy_faults.CATALOGUE.items():
    CATALOGUE[proxy_name] = (' '.join('[%s]' % n.upper() for n in proxy_arguments), proxy_help + ' · proxy', on_proxy)


def print_list():
    for name, (arguments, text, _) in CATALOGUE.items():
        print('%-52s %s' % (name + ' ' + arguments, text))
    print('\nrig fault NAME [ARGS] --off takes it back. "proxy": hits clients only (clouds.yaml and proxy.conf), not the services among themselves.')


def active():
    with remembered() as known:
        return {'faults': sorted(known), 'proxy': control('GET', '/faults')}


def clear():
    with remembered() as known:
        entries = list(known.values())
    failed = []
    # frozen and ended processes first: the others may need them
    for e in sorted(reversed(entries), key=lambda e: not e['name'].endswith(('-hang', '-kill'))):
        try:
            CATALOGUE[e['name']][2](Act(e['name'], e['arguments'], True))
        except NoSuchMachine:      # and with it what was wrong with it
            Act(e['name'], e['arguments'], True).recall()
        except (Trouble, Refused, OSError) as problem:
            failed.append('%s: %s' % (e['name'], problem))
    control('DELETE', '/faults')
    if failed:
        raise Trouble('not all could be taken back:\n  ' + '\n  '.join(failed))


def main(words):
    off = '--off' in words
    words = [w for w in words if w != '--off']
    if not words or words[0] in ('--list', 'list'):
        return print_list()
    if words[0] == '--calls':
        return print(json.dumps(control('DELETE' if '--reset' in words else 'GET', '/calls'), indent=2))
    if words[0] == '--active':
        return print(json.dumps(active(), indent=2))
    if words[0] == '--clear':
        return clear()
    name, arguments = words[0], words[1:]
    if name not in CATALOGUE:
        raise Trouble('there is no fault "%s". Those there are: rig fault' % name)
    wanted = [w for w in CATALOGUE[name][0].split() if not w.startswith('[')]
    if len(arguments) < (min(len(wanted), 1) if off else len(wanted)):
        raise Trouble('%s wants: rig fault %s %s' % (name, name, CATALOGUE[name][0]))
    CATALOGUE[name][2](Act(name, arguments, off))


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except (Trouble, Refused, OSError, ValueError) as problem:
        sys.exit('rig fault: %s' % problem)
