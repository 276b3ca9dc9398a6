"""Faults of the cloud: security groups, ports and routes (Neutron), servers and hosts (Nova).

Data: through the real APIs, as demo or, where a member may not, as admin; a few through Nova's database or the files that the virt
driver reads ($RIG_STATE/faults). Each registers itself in the catalogue. Nothing here waits for a controller to notice.
"""
import contextlib
import json
import os
import subprocess
import sys

from fault_kit import fault
from machine import STATE, Trouble, cloud, find, kubectl, ports_of, set_silent, simulated_node_of, wait_until
from osapi import admin, demo
from seed_objects import pod_rules


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
    # In the group while it is being attached, which changes it several times; it is taken off when the port stands.
    port = d.neutron('POST', '/ports', {'port': {'network_id': c['network'], 'security_groups': [c['securityGroup']], 'name': s['name'] + '-second'}})['port']['id']
    a.keep(port)
    d.nova('POST', '/servers/%s/os-interface' % s['id'], {'interfaceAttachment': {'port_id': port}}, microversion='2.1')
    wait_until('the port to be wired', 20, lambda: d.neutron('GET', '/ports/' + port)['port']['status'] == 'ACTIVE')
    d.neutron('PUT', '/ports/' + port, {'port': {'security_groups': []}})


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


@fault('duplicate-route', 'MACHINE [NEXTHOP]', 'a second route for the node\'s pod range, to another next hop (default an address of no machine)')
def duplicate_route(a):
    if a.off:
        return change_routes(remove=a.recall())
    routes = [{'destination': pod_cidr(a.argument()), 'nexthop': a.argument(1, '10.8.0.9')}]
    a.keep(routes)
    change_routes(add=routes)


@fault('route-to-dead', '[CIDR] [NEXTHOP]', 'a route of a pod range of no node (default 198.19.250.0/24) to an address of no machine')
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


@fault('stuck-deleting', 'MACHINE [lost]', 'delete the machine and let it hang at that; "lost": the task is set, no service works on it (--off: gone; lost: ACTIVE)')
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


@fault('shutoff', 'MACHINE', 'a user stopped the server, and its simulated kubelet with it (--off: starts both)')
def shutoff(a):
    d = demo()
    s = find(d, a.argument())
    a.recall() if a.off else a.keep()
    if simulated_node_of(s):
        set_silent(s['name'], not a.off)
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
