"""Machines of the rig: Nova servers in project demo, and Kubernetes nodes for them.

    machine.py create NAME... --pool P ...      boots servers with tags k8s-cluster=rig and k8s-pool=P
    machine.py node NAME...                     makes each one's node: providerID, addresses, pod CIDR, route; kwok keeps it Ready
    machine.py list | delete NAME...

Talks to the services' own ports, so armed proxy faults do not get in its way. Machines are named by server name or id. It changes
nothing that it was not told to, and waits for what it did to be visible.
"""
import argparse
import json
import os
import subprocess
import sys
import time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, root + '/openstack')
from osapi import Refused, demo  # noqa: E402  (the path has to be there first)

STATE = os.environ['RIG_STATE']


class Trouble(Exception):
    """What went wrong, and what to do."""


class NoSuchMachine(Trouble):
    """Nova has no server of that name or id."""


def description():
    with open(STATE + '/rig.json') as f:
        return json.load(f)


def cloud():
    c = description().get('openstack')
    if not c:
        raise Trouble('this rig has no OpenStack. Start one that has: rig up kubernetes openstack')
    return c


def kubectl(*arguments, text=None, check=True):
    kubernetes = description().get('kubernetes')
    if not kubernetes:
        raise Trouble('this rig has no Kubernetes. Start one that has: rig up kubernetes openstack')
    r = subprocess.run([kubernetes['kubectl'], '--kubeconfig', kubernetes['kubeconfig'], '--request-timeout=20s', *arguments],
                       input=text, capture_output=True, text=True)
    if check and r.returncode:
        raise Trouble('kubectl %s: %s' % (' '.join(arguments[:4]), r.stderr.strip()))
    return r.stdout if check else r


def servers(session):
    """All servers of the project, every page."""
    found, path = [], '/servers/detail?limit=500'
    while path:
        page = session.nova('GET', path)
        found += page['servers']
        marker = page['servers'][-1]['id'] if any(x['rel'] == 'next' for x in page.get('servers_links', [])) else None
        path = marker and '/servers/detail?limit=500&marker=' + marker
    return found


def find(session, name):
    hits = [s for s in servers(session) if name in (s['name'], s['id'])]
    if not hits:
        raise NoSuchMachine('there is no machine "%s". Those there are: rig machine list' % name)
    if len(hits) > 1:
        raise Trouble('%d machines are called "%s"; name one by its id: %s' % (len(hits), name, ', '.join(s['id'] for s in hits)))
    return hits[0]


def address(server):
    return next((a['addr'] for addresses in server['addresses'].values() for a in addresses if a['version'] == 4), None)


def ports_of(session, server):
    return session.neutron('GET', '/ports?device_id=' + server['id'])['ports']


def wait_until(what, seconds, check):
    end = time.time() + seconds
    while True:
        result = check()
        if result:
            return result
        if time.time() > end:
            raise Trouble('waited %d s for %s, in vain' % (seconds, what))
        time.sleep(0.15)


def row(s):
    return {'name': s['name'], 'id': s['id'], 'status': s['status'], 'task': s['OS-EXT-STS:task_state'], 'address': address(s), 'tags': s.get('tags', []),
            'securityGroups': sorted({g['name'] for g in s.get('security_groups', [])}), 'fault': s.get('fault', {}).get('message')}


def show(rows, as_json):
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    line = '%-20s %-36s %-9s %-10s %-14s %s'
    print(line % ('NAME', 'ID', 'STATUS', 'TASK', 'ADDRESS', 'GROUPS · TAGS'))
    for r in rows:
        print(line % (r['name'], r['id'], r['status'], r['task'] or '-', r['address'] or '-', '%s · %s%s' % (
            ','.join(r['securityGroups']) or '-', ' '.join(r['tags']) or '-', '  (%s)' % r['fault'] if r['fault'] else '')))


def create(o):
    d, c = demo(), cloud()
    groups = [] if o.no_group else (o.group or [c['securityGroupName']])
    tags = [] if o.no_tags else [c['clusterTag']] + ([c['poolTagPrefix'] + o.pool] if o.pool else [])
    made = []
    for name in o.names:
        body = {'name': name, 'imageRef': c['image'], 'flavorRef': o.flavor, 'networks': [{'uuid': c['network']}]}
        if groups:
            body['security_groups'] = [{'name': g} for g in groups]
        if tags + o.tag:
            body['tags'] = tags + o.tag
        made.append(d.nova('POST', '/servers', {'server': body})['server']['id'])

    def settled(s):
        return s['status'] in ('ACTIVE', 'ERROR') and not s['OS-EXT-STS:task_state']
    if o.no_group:       # Nova puts a port without wishes into "default"; take that away, too
        for i in made:
            for p in wait_until('a port of %s' % i, 60, lambda: ports_of(d, {'id': i})):
                d.neutron('PUT', '/ports/' + p['id'], {'port': {'security_groups': []}})
    if not o.no_wait:
        wait_until('servers %s to become ACTIVE or ERROR' % ', '.join(o.names), 60 + 3 * len(made),
                   lambda: all(settled(d.nova('GET', '/servers/' + i)['server']) for i in made))
    show([row(d.nova('GET', '/servers/' + i)['server']) for i in made], o.json)


def set_silent(name, silent):
    """The simulated kubelet of a node ends, or begins again: no lease, no heartbeat. Its Node object stays, as it would."""
    mark = 'reveille.rig/silent' + ('=true' if silent else '-')
    kubectl('annotate', 'node', name, '--overwrite', mark)
    kubectl('-n', 'kube-node-lease', 'annotate', 'lease', name, '--overwrite', mark, check=False)


def simulated_node_of(server):
    """Whether the server's Kubernetes node is one that kwok plays."""
    if not description().get('kubernetes'):
        return False
    r = kubectl('get', 'node', server['name'], '-o', 'json', check=False)
    node = json.loads(r.stdout) if r.returncode == 0 else {}
    return node.get('status', {}).get('nodeInfo', {}).get('systemUUID') == server['id'] and 'kwok.x-k8s.io/node' in node['metadata'].get('annotations', {})


def delete(o):
    d = demo()
    gone = [find(d, n) for n in o.names]
    for s in gone:
        if not o.keep_kubelet and simulated_node_of(s):
            set_silent(s['name'], True)
    for s in gone:
        d.call('nova', 'DELETE', '/servers/' + s['id'])
    if not o.no_wait:
        wait_until('servers %s to be gone' % ', '.join(o.names), 60 + len(gone),
                   lambda: all(d.call('nova', 'GET', '/servers/' + s['id']).status == 404 for s in gone))


def listing(o):
    show([row(s) for s in servers(demo())], o.json)


def simulated_node(name, uuid, ip, spec, not_ready=False, boot_id=None):
    """Makes a Kubernetes node that kwok keeps Ready, and waits until it is there with its range of pod addresses."""
    annotations = {'kwok.x-k8s.io/node': 'fake'}
    if not_ready:
        annotations['reveille.rig/not-ready'] = 'true'
    labels = {'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64'}
    size = {'cpu': '2', 'memory': '4Gi', 'pods': '110'}
    now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
    status = {'addresses': [{'type': 'InternalIP', 'address': ip}, {'type': 'Hostname', 'address': name}], 'capacity': size, 'allocatable': size,
              'nodeInfo': {'systemUUID': uuid, 'machineID': uuid.replace('-', ''), 'bootID': boot_id or uuid, 'kernelVersion': '6.1.0', 'osImage': 'rig',
                           'containerRuntimeVersion': 'kwok://0', 'kubeletVersion': 'v1.36.3', 'kubeProxyVersion': '', 'operatingSystem': 'linux', 'architecture': 'amd64'}}
    if not_ready:
        status['conditions'] = [{'type': 'Ready', 'status': 'False', 'reason': 'KubeletNotReady', 'lastHeartbeatTime': now, 'lastTransitionTime': now,
                                 'message': 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized'}]
    # With its status at once, as a kubelet registers: a node that has never said anything is another thing.
    made = json.loads(kubectl('create', '-f', '-', '-o', 'json', text=json.dumps({'apiVersion': 'v1', 'kind': 'Node', 'spec': spec, 'status': status,
            'metadata': {'name': name, 'annotations': annotations, 'labels': labels}})))

    def seen():
        n = json.loads(kubectl('get', 'node', name, '-o', 'json', '--ignore-not-found') or 'null')
        if n is None:       # a cloud controller that does not know the machine has deleted it by now
            made['spec'].setdefault('podCIDR', '')
            return made
        ready = any(x['type'] == 'Ready' and x['status'] == 'True' for x in n.get('status', {}).get('conditions', []))
        return n if n['spec'].get('podCIDR') and (ready or not_ready) else None
    return wait_until('node %s to be Ready with a pod CIDR (kwok and kube-controller-manager do that)' % name, 30, seen)


def node(o):
    d, c = demo(), cloud()
    result = []
    for name in o.names:
        s = find(d, name)
        ip = wait_until('an address of %s' % name, 30, lambda: address(d.nova('GET', '/servers/' + s['id'])['server']))
        spec = {} if o.no_provider_id else {'providerID': 'openstack:///' + s['id']}
        if o.taint_uninitialized:
            spec['taints'] = [{'key': 'node.cloudprovider.kubernetes.io/uninitialized', 'value': 'true', 'effect': 'NoSchedule'}]
        n = simulated_node(s['name'], s['id'], ip, spec, o.not_ready, o.boot_id)
        pods = n['spec']['podCIDR']
        if not o.no_route:      # as the cloud controller does: the route, and the port may send from the pod range
            for p in ports_of(d, s):
                d.neutron('PUT', '/ports/' + p['id'], {'port': {'allowed_address_pairs': [{'ip_address': pods}]}})
            d.neutron('PUT', '/routers/%s/add_extraroutes' % c['router'], {'router': {'routes': [{'destination': pods, 'nexthop': ip}]}})
        result.append({'name': s['name'], 'providerID': n['spec'].get('providerID'), 'podCIDR': pods, 'address': ip, 'ready': not o.not_ready, 'route': not o.no_route})
    if o.json:
        print(json.dumps(result, indent=2))
    else:
        for r in result:
            print('node %(name)s  %(providerID)s  %(address)s  pods %(podCIDR)s  ' % r + ('Ready' if r['ready'] else 'not Ready') + ('' if r['route'] else '  without a route'))


def main():
    p = argparse.ArgumentParser(prog='rig machine', description=__doc__.split('\n')[0])
    sub = p.add_subparsers(dest='command', required=True)
    q = sub.add_parser('create', help='boot servers')
    q.add_argument('names', nargs='+', metavar='NAME')
    q.add_argument('--pool', default='workers', help='tag k8s-pool=POOL (default workers)')
    q.add_argument('--group', action='append', help='security group by name; repeat for several (default k8s-nodes)')
    q.add_argument('--no-group', action='store_true', help='a port with no security group at all')
    q.add_argument('--flavor', default='1', help='1, 2, or 99 (too big for any host)')
    q.add_argument('--tag', action='append', default=[], help='one more tag')
    q.add_argument('--no-tags', action='store_true', help='a machine without an owner')
    q.add_argument('--no-wait', action='store_true')
    q.add_argument('--json', action='store_true')
    q.set_defaults(do=create)
    q = sub.add_parser('delete', help='delete servers and wait until they are gone')
    q.add_argument('names', nargs='+', metavar='NAME')
    q.add_argument('--no-wait', action='store_true')
    q.add_argument('--keep-kubelet', action='store_true', help='its kubelet (simulated or real) goes on without it')
    q.set_defaults(do=delete)
    q = sub.add_parser('list', help='what Nova says')
    q.add_argument('--json', action='store_true')
    q.set_defaults(do=listing)
    q = sub.add_parser('node', help='make the Kubernetes node of a machine')
    q.add_argument('names', nargs='+', metavar='NAME')
    q.add_argument('--not-ready', action='store_true', help='joined, leased, but NotReady for want of a network plugin')
    q.add_argument('--no-provider-id', action='store_true')
    q.add_argument('--no-route', action='store_true', help='leave the route of its pod range to others')
    q.add_argument('--boot-id', help='of the boot that its kubelet runs in; a node reports another one after each boot')
    q.add_argument('--taint-uninitialized', action='store_true', help='as kubelet --cloud-provider=external does; the cloud controller takes it off')
    q.add_argument('--json', action='store_true')
    q.set_defaults(do=node)
    o = p.parse_args()
    try:
        o.do(o)
    except (Trouble, Refused, OSError) as problem:
        sys.exit('rig machine: %s' % problem)


if __name__ == '__main__':
    main()
