"""Faults by name: break one thing in the rig the way it breaks in the world, and mend it again with --off.

    faults.py                      the list           faults.py NAME [ARGS] [--off]
    faults.py --active             what is broken now faults.py --clear          mend everything
    faults.py --calls [--reset]    what went through the fault proxy

Data: cloud faults go through the real APIs (as demo, or admin where a member may not), a few through the database or the files
that the virt driver reads ($RIG_STATE/faults); process faults are signals; proxy faults are armed on the proxy's control port.
What --off has to put back is kept in $RIG_STATE/active-faults.json. Nothing here waits for anybody to notice.
"""
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

from machine import STATE, Trouble, address, cloud, description, find, kubectl, ports_of, root, wait_until
from osapi import Refused, admin, demo
from seed_objects import pod_rules
import proxy_faults

CATALOGUE = {}      # name: (arguments, help, function)


def fault(name, arguments, text):
    def register(function):
        CATALOGUE[name] = (arguments, text, function)
        return function
    return register


# --- what --off needs: one JSON file, under a lock
@contextlib.contextmanager
def remembered():
    with open(STATE + '/active-faults.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(STATE + '/active-faults.json') as f:
                known = json.load(f)
        except OSError:
            known = {}
        yield known
        with open(STATE + '/active-faults.json', 'w') as f:
            json.dump(known, f, indent=2)


class Act:
    """One call of a fault: its arguments, whether it is to be taken back, and what was remembered for that."""

    def __init__(self, name, arguments, off):
        self.name, self.arguments, self.off = name, arguments, off
        self.key = ' '.join([name] + arguments[:1])

    def argument(self, position=0, default=None):
        return self.arguments[position] if len(self.arguments) > position else default

    def keep(self, what=True):
        with remembered() as known:
            known.setdefault(self.key, {'name': self.name, 'arguments': self.arguments, 'undo': what})

    def recall(self):
        with remembered() as known:
            entry = known.pop(self.key, None)
        if entry is None:
            raise Trouble('"%s" is not on. What is: rig fault --active' % self.key)
        return entry['undo']


# --- Neutron: groups, rules, ports, routes
@fault('group-off', 'MACHINE [GROUP]', 'take the security group (default k8s-nodes) off the machine\'s ports, behind Nova\'s back')
def group_off(a):
    d, c = demo(), cloud()
    s = find(d, a.argument())
    if a.off:
        for port, groups in a.recall().items():
            d.neutron('PUT', '/ports/' + port, {'port': {'security_groups': groups}})
        return
    wanted = a.argument(1, c['securityGroupName'])
    ids = {g['id'] for g in d.neutron('GET', '/security-groups?name=' + wanted)['security_groups']}
    before = {p['id']: p['security_groups'] for p in ports_of(d, s)}
    if not any(ids & set(groups) for groups in before.values()):
        raise Trouble('no port of %s has the group "%s"' % (s['name'], wanted))
    a.keep(before)
    for port, groups in before.items():
        d.neutron('PUT', '/ports/' + port, {'port': {'security_groups': [g for g in groups if g not in ids]}})


@fault('rule-off', '[tcp|udp|icmp]', 'delete the pod rules (or one protocol\'s) of the group k8s-nodes')
def rule_off(a):
    d, group = demo(), cloud()['securityGroup']
    if a.off:
        a.recall()
        for rule in pod_rules(group):
            if rule['protocol'] == a.argument(0, rule['protocol']) and d.call('neutron', 'POST', '/security-group-rules', {'security_group_rule': rule}).status not in (201, 409):
                raise Trouble('the %s rule could not be made again' % rule['protocol'])
        return
    a.keep()
    for rule in d.neutron('GET', '/security-group-rules?direction=ingress&security_group_id=' + group)['security_group_rules']:
        if rule['protocol'] == a.argument(0, rule['protocol']):
            d.neutron('DELETE', '/security-group-rules/' + rule['id'])


@fault('second-port-without-group', 'MACHINE', 'attach a second port that has no security group')
def second_port(a):
    d, c = demo(), cloud()
    s = find(d, a.argument())
    if a.off:
        port = a.recall()
        d.call('nova', 'DELETE', '/servers/%s/os-interface/%s' % (s['id'], port))
        wait_until('the port to be detached', 20, lambda: port not in [p['id'] for p in ports_of(d, s)])
        d.call('neutron', 'DELETE', '/ports/' + port)
        return
    port = d.neutron('POST', '/ports', {'port': {'network_id': c['network'], 'security_groups': [], 'name': s['name'] + '-second'}})['port']['id']
    a.keep(port)
    d.nova('POST', '/servers/%s/os-interface' % s['id'], {'interfaceAttachment': {'port_id': port}}, microversion='2.1')


@fault('port-gone', 'MACHINE', 'delete the machine\'s ports under it (--off attaches a new one in the group k8s-nodes)')
def port_gone(a):
    d, c = demo(), cloud()
    s = find(d, a.argument())
    if a.off:
        a.recall()
        d.nova('POST', '/servers/%s/os-interface' % s['id'], {'interfaceAttachment': {'net_id': c['network']}}, microversion='2.1')
        for p in ports_of(d, s):
            d.neutron('PUT', '/ports/' + p['id'], {'port': {'security_groups': [c['securityGroup']]}})
        return
    a.keep()
    for p in ports_of(d, s):
        admin().neutron('DELETE', '/ports/' + p['id'])


def change_routes(add=(), remove=()):
    router = '/routers/' + cloud()['router']
    for verb, routes in (('remove_extraroutes', remove), ('add_extraroutes', add)):
        if routes:
            demo().neutron('PUT', '%s/%s' % (router, verb), {'router': {'routes': list(routes)}})


def pod_cidr(name):
    cidr = json.loads(kubectl('get', 'node', name, '-o', 'json'))['spec'].get('podCIDR')
    if not cidr:
        raise Trouble('node %s has no pod CIDR yet' % name)
    return cidr


@fault('missing-route', 'MACHINE', 'remove the route of the node\'s pod range from the router')
def missing_route(a):
    if a.off:
        return change_routes(add=a.recall())
    cidr = pod_cidr(a.argument())
    routes = [r for r in demo().neutron('GET', '/routers/' + cloud()['router'])['router']['routes'] if r['destination'] == cidr]
    if not routes:
        raise Trouble('the router has no route for %s' % cidr)
    a.keep(routes)
    change_routes(remove=routes)


@fault('duplicate-route', 'MACHINE [NEXTHOP]', 'a second route for the node\'s pod range, to another next hop (default an address nobody has)')
def duplicate_route(a):
    if a.off:
        return change_routes(remove=a.recall())
    routes = [{'destination': pod_cidr(a.argument()), 'nexthop': a.argument(1, '10.8.0.9')}]
    a.keep(routes)
    change_routes(add=routes)


@fault('route-to-dead', '[CIDR] [NEXTHOP]', 'a route of a pod range nobody owns (default 198.19.250.0/24) to an address nobody has')
def route_to_dead(a):
    if a.off:
        return change_routes(remove=a.recall())
    routes = [{'destination': a.argument(0, '198.19.250.0/24'), 'nexthop': a.argument(1, '10.8.0.8')}]
    a.keep(routes)
    change_routes(add=routes)


@fault('route-limit', 'N', 'the project may have N extra routes per router; the next one is 409 OverQuota')
def route_limit(a):
    path = '/quotas/' + cloud()['projectID']
    if a.off:
        a.recall()
        return admin().neutron('DELETE', path)
    a.keep()
    admin().neutron('PUT', path, {'quota': {'router_route': int(a.argument())}})


# --- Nova: servers
def nova_action(session, server, action, body=None):
    session.nova('POST', '/servers/%s/action' % server['id'], {action: body})


def database(statement, *values):
    """Where no API reaches: Nova's own tables, by the interpreter that has a MySQL client."""
    code = ('import json,sys,pymysql; a=json.loads(sys.argv[1]); c=pymysql.connect(unix_socket=a[0],user="root",database="nova",autocommit=True).cursor();'
            'c.execute(a[1],a[2])')
    r = subprocess.run([os.environ['RIG_VENV'] + '/bin/python', '-c', code, json.dumps([STATE + '/mysql.sock', statement, values])], capture_output=True, text=True)
    if r.returncode:
        raise Trouble('the database refused: ' + r.stderr.strip().split('\n')[-1])


@fault('errored', 'MACHINE [MESSAGE]', 'the server is in ERROR; with a message, that is its fault (--off: ACTIVE)')
def errored(a):
    s = find(demo(), a.argument())
    if a.off:
        a.recall()
        database('delete from instance_faults where instance_uuid=%s', s['id'])
        return nova_action(admin(), s, 'os-resetState', {'state': 'active'})
    a.keep()
    nova_action(admin(), s, 'os-resetState', {'state': 'error'})
    if a.argument(1):
        database('insert into instance_faults (created_at, updated_at, instance_uuid, code, message, details, host, deleted) values (now(), now(), %s, 500, %s, %s, %s, 0)',
                 s['id'], a.argument(1), '', 'fake1')


def pattern_file(off, file, pattern):
    """Add a line to, or take it from, a file that the virt driver reads at every operation."""
    path = '%s/faults/%s' % (STATE, file)
    lines = []
    if os.path.exists(path):
        with open(path) as f:
            lines = [x for x in f.read().split('\n') if x]
    lines = [x for x in lines if x != pattern] + ([] if off else [pattern])
    if lines:
        with open(path + '.new', 'w') as f:
            f.write('\n'.join(lines) + '\n')
        os.replace(path + '.new', path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@fault('spawn-fail', 'PATTERN', 'servers whose name matches (regular expression) end in ERROR when they are created')
def spawn_fail(a):
    a.recall() if a.off else a.keep()
    pattern_file(a.off, 'spawn.fail', a.argument())


@fault('stuck-build', 'PATTERN', 'servers whose name matches stay in BUILD (spawning) while this is on')
def stuck_build(a):
    a.recall() if a.off else a.keep()
    pattern_file(a.off, 'spawn.block', a.argument())


@fault('bind-fail', 'HOST-PATTERN', 'ports on matching hosts (fake1 ... fake10) do not bind; new servers end in ERROR')
def bind_fail(a):
    a.recall() if a.off else a.keep()
    pattern_file(a.off, 'bind.fail', a.argument())


@fault('reboot-fail', 'PATTERN', 'a reboot of servers whose name matches fails')
def reboot_fail(a):
    a.recall() if a.off else a.keep()
    pattern_file(a.off, 'reboot.fail', a.argument())


@fault('stuck-deleting', 'MACHINE [lost]', 'delete the machine and let it hang at that; "lost": the task is set, nobody works on it (--off: gone; lost: ACTIVE)')
def stuck_deleting(a):
    s = find(demo(), a.argument())
    how = a.recall() if a.off else ('lost' if a.argument(1) == 'lost' else 'hangs')
    if not a.off:
        a.keep(how)
    if how == 'hangs':      # the hypervisor hangs at it; --off lets it go on, and the machine is gone
        pattern_file(a.off, 'destroy.block', s['id'])
        if not a.off:
            demo().call('nova', 'DELETE', '/servers/' + s['id'])
            wait_until('task_state deleting', 20, lambda: demo().nova('GET', '/servers/' + s['id'])['server']['OS-EXT-STS:task_state'] == 'deleting')
    elif a.off:
        nova_action(admin(), s, 'os-resetState', {'state': 'active'})
    else:
        database("update instances set task_state='deleting' where uuid=%s", s['id'])


@fault('console', 'MACHINE FILE|-', 'the machine\'s console log is this text (--off: the driver\'s own)')
def console(a):
    s = find(demo(), a.argument())
    path = '%s/faults/console/%s' % (STATE, s['id'])
    if a.off:
        a.recall()
        return os.unlink(path)
    source = a.argument(1)
    if source is None:
        raise Trouble('console wants a file, or - for standard input')
    if source == '-':
        text = sys.stdin.read()
    else:
        with open(source) as f:
            text = f.read()
    a.keep()
    with open(path, 'w') as f:
        f.write(text)


@fault('shutoff', 'MACHINE', 'somebody stopped the server (--off: starts it)')
def shutoff(a):
    d = demo()
    s = find(d, a.argument())
    if a.off:
        a.recall()
    else:
        a.keep()
    nova_action(d, s, 'os-start' if a.off else 'os-stop')
    wait_until('the server to be there', 20, lambda: d.nova('GET', '/servers/' + s['id'])['server']['status'] == ('ACTIVE' if a.off else 'SHUTOFF'))


@fault('host-down', '[HOST]', 'a compute host (fake1 ... fake10; default all) is down; its servers still say ACTIVE')
def host_down(a):
    s = admin()
    a.recall() if a.off else a.keep()
    for x in s.nova('GET', '/os-services?binary=nova-compute', microversion='2.53')['services']:
        if a.argument() in (None, x['host']):
            s.nova('PUT', '/os-services/' + x['id'], {'forced_down': not a.off}, microversion='2.53')


@fault('quota', 'N', 'the project may have N servers; the next one is 403')
def quota(a):
    path = '/os-quota-sets/' + cloud()['projectID']
    if a.off:
        a.recall()
        return admin().nova('DELETE', path)
    a.keep()
    admin().nova('PUT', path, {'quota_set': {'instances': int(a.argument()), 'force': True}})


# --- Kubernetes
@fault('node-delete', 'NODE', 'somebody deletes the Node object (cannot be taken back)')
def node_delete(a):
    if a.off:
        raise Trouble('a deleted node is not made again by --off: rig machine node NAME, or rig node restart-kubelet NAME')
    kubectl('delete', 'node', a.argument(), '--wait=false')


@fault('node-silent', 'NODE', 'a simulated node\'s kubelet falls silent: no lease, no heartbeat (real nodes: rig node stop-kubelet)')
def node_silent(a):
    a.recall() if a.off else a.keep()
    kubectl('annotate', 'node', a.argument(), '--overwrite', 'kwok.x-k8s.io/node' + ('=fake' if a.off else '-'))


# --- processes: frozen or ended
def rig(*arguments):
    r = subprocess.run([root + '/rig', *arguments], capture_output=True, text=True)
    if r.returncode:
        raise Trouble(r.stderr.strip())


def process_faults():
    for word, process, what in (('nova', 'nova', 'Nova'), ('neutron', 'neutron', 'Neutron'), ('keystone', 'keystone', 'Keystone'),
                                ('api', 'kube-apiserver', 'kube-apiserver'), ('etcd', 'etcd', 'etcd'),
                                ('controller-manager', 'kube-controller-manager', 'kube-controller-manager'),
                                ('occm', 'openstack-cloud-controller-manager', 'the cloud controller')):
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


# --- the proxy
def control(method, path, body=None):
    request = urllib.request.Request(description()['control'] + path, method=method, data=json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=10) as r:
            return json.load(r)
    except urllib.error.HTTPError as refused:
        raise Trouble(json.load(refused).get('error', refused))
    except OSError as problem:
        raise Trouble('the fault proxy does not answer (%s). Is the rig up? rig status' % problem)


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
    for e in reversed(entries):
        try:
            CATALOGUE[e['name']][2](Act(e['name'], e['arguments'], True))
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
