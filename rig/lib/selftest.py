"""Bring rigs up, try every part and the faults, take them down, and look for leftovers.

    rig selftest [--keep-going-without nodes|occm ...]      prints one line per check; exit code 1 when one failed

Data: works in a RIG_HOME of its own below the temporary directory, drives `rig` as a person would, and looks from where a client
stands: through the fault proxy, at the Kubernetes API. A part that cannot run here (no root, no namespaces) is counted "not run",
never as passed. It judges the rig, not Reveille.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, root + '/openstack')
from osapi import Session  # noqa: E402  (the path has to be there first)

counts = {'passed': 0, 'failed': 0, 'not run': 0}
home = tempfile.mkdtemp(prefix='rig-')
environment = dict(os.environ, RIG_HOME=home, RIG_NAME='self')
for inherited in ('KUBECONFIG', 'RIG_STATE'):
    environment.pop(inherited, None)


def check(what, passed, seen=''):
    counts['passed' if passed else 'failed'] += 1
    print('%-8s%s%s' % ('ok' if passed else 'FAILED', what, '' if passed else '   saw: %s' % str(seen)[:600]), flush=True)


def not_run(what, why):
    counts['not run'] += 1
    print('%-8s%s   (%s)' % ('not run', what, why), flush=True)


def rig(*words, ok=True, text=None, seconds=1200):
    r = subprocess.run([root + '/rig', *words], capture_output=True, text=True, env=environment, input=text, timeout=seconds)
    if ok and r.returncode:
        raise RuntimeError('rig %s: %s' % (' '.join(words), (r.stderr + r.stdout).strip()[-600:]))
    return r


def description():
    with open(home + '/self/rig.json') as f:
        return json.load(f)


def kubectl(*words, through='admin.conf', ok=True):
    r = subprocess.run([description()['kubernetes']['kubectl'], '--kubeconfig', '%s/self/%s' % (home, through), '--request-timeout=5s', *words],
                       capture_output=True, text=True)
    if ok and r.returncode:
        raise RuntimeError('kubectl %s: %s' % (' '.join(words), r.stderr.strip()))
    return r.stdout


def ready(node):
    return kubectl('get', 'node', node, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}', ok=False)


def within(seconds, test):
    end = time.time() + seconds
    while True:
        result = test()
        if result or time.time() > end:
            return result
        time.sleep(0.2)


def client(timeout=20):
    """As Reveille would: through the fault proxy, with a token of its own."""
    return Session('demo', 'demo', 'demo', proxy=True, timeout=timeout)


def fails(work):
    try:
        work()
    except OSError as problem:
        return type(problem).__name__
    except Exception as problem:      # http.client's own errors are no OSErrors
        return type(problem).__name__
    return None


@contextlib.contextmanager
def fault(*words, text=None):
    rig('fault', *words, text=text)
    try:
        yield
    finally:
        rig('fault', *words, '--off')


def server(d, name):
    return next((s for s in d.nova('GET', '/servers/detail')['servers'] if s['name'] == name), None)


def ports(d, name):
    return d.neutron('GET', '/ports?device_id=' + server(d, name)['id'])['ports']


def outside():
    """What a rig must leave as it was."""
    def tool(*words):
        if not shutil.which(words[0]):
            return ''
        return subprocess.run(words, capture_output=True, text=True).stdout
    settings = {}
    for s in ('vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops', 'kernel/keys/root_maxkeys'):
        with contextlib.suppress(OSError), open('/proc/sys/' + s) as f:
            settings[s] = f.read()
    with open('/proc/self/mounts') as f:
        mounts = f.read()
    groups = sorted(d for top, dirs, _ in os.walk('/sys/fs/cgroup') for d in dirs if d.startswith('reveille-rig-self'))
    there = [p for p in ('/etc/kubernetes', '/var/lib/kubelet', '/var/lib/cni', '/run/containerd', '/etc/keystone') if os.path.exists(p)]
    rules = [x for x in tool('iptables-save').split('\n') if 'KUBE' in x or 'CNI' in x]
    return {'settings': settings, 'mounts': mounts, 'cgroups': groups, 'paths': there, 'iptables': rules, 'links': tool('ip', '-o', 'link').count('\n'), 'netns': tool('ip', 'netns')}


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open('/proc/%s/environ' % pid, 'rb') as f:
                marked = ('REVEILLE_RIG_PROCESS=' + home).encode() in f.read()
            with open('/proc/%s/cmdline' % pid, 'rb') as f:
                marked = marked or home.encode() in f.read()
            if marked and int(pid) != os.getpid():
                found.append(pid)
    return found


def lifecycle():
    r = rig('up', 'kubernetes', 'openstack', 'kwok', '--node-grace', '20s')
    print('        ' + [x for x in r.stderr.split('\n') if 'is up' in x][0], flush=True)
    again = rig('up', ok=False)
    check('a second `up` of the same name is refused', again.returncode != 0 and 'already up' in again.stderr, again.stderr)
    bad = rig('up', 'nonsense', '--name', 'other', ok=False)
    check('an unknown part is refused, and nothing is left of the try', bad.returncode != 0 and not os.path.exists(home + '/other'), bad.stderr)
    beside = rig('up', 'kubernetes', '--name', 'beside', ok=False)
    check('another rig comes up beside it', beside.returncode == 0, beside.stderr)
    check('... and goes down alone', rig('down', '--name', 'beside').returncode == 0 and kubectl('get', '--raw', '/readyz') == 'ok')
    with open(home + '/self/ports') as f:
        os.environ.update(line.strip().split('=') for line in f)
    everywhere = subprocess.run(['ss', '-Hltnp'], capture_output=True, text=True).stdout if shutil.which('ss') else ''
    own = [x for x in everywhere.split('\n') if any(':%s ' % p in x for p in description()['ports'].values())]
    check('it listens on 127.0.0.1 only', all('127.0.0.1:' in x for x in own), own)
    for name in ('env', 'rig.json', 'admin.conf', 'proxy.conf', 'clouds.yaml', 'roster.yaml', 'roster-proxy.yaml'):
        check('%s is there' % name, os.path.getsize('%s/self/%s' % (home, name)) > 50)


def machines():
    d = client()
    rig('machine', 'create', 'm-1', 'm-2', '--pool', 'workers')
    s = server(d, 'm-1')
    check('a machine is ACTIVE, tagged and in its group', s['status'] == 'ACTIVE' and sorted(s['tags']) == ['k8s-cluster=rig', 'k8s-pool=workers']
          and s['security_groups'] == [{'name': 'k8s-nodes'}], s)
    rig('machine', 'create', 'm-3', '--no-group', '--pool', 'workers')
    check('--no-group makes a port without groups', ports(d, 'm-3')[0]['security_groups'] == [], ports(d, 'm-3'))
    rig('machine', 'node', 'm-1', 'm-2')
    n = json.loads(kubectl('get', 'node', 'm-1', '-o', 'json'))
    check('its node is Ready and names the server', ready('m-1') == 'True' and n['spec']['providerID'] == 'openstack:///' + s['id'], n['spec'])
    check('its pod range is routed', any(r['destination'] == n['spec']['podCIDR'] for r in routes(d)), routes(d))
    rig('machine', 'node', 'm-3', '--not-ready', '--no-route')
    check('--not-ready stays so', within(3, lambda: ready('m-3') == 'True') is False and ready('m-3') == 'False', ready('m-3'))


def routes(d):
    return d.neutron('GET', '/routers?name=rig-router')['routers'][0]['routes']


def cloud_faults():
    d = client()
    group = lambda: [r['protocol'] for r in d.neutron('GET', '/security-groups?name=k8s-nodes')['security_groups'][0]['security_group_rules'] if r['direction'] == 'ingress']
    with fault('group-off', 'm-1'):
        check('group-off', ports(d, 'm-1')[0]['security_groups'] == [])
    check('... and back', len(ports(d, 'm-1')[0]['security_groups']) == 1)
    with fault('rule-off'):
        check('rule-off', group() == [], group())
    check('... and back', sorted(group()) == ['icmp', 'tcp', 'udp'], group())
    with fault('second-port-without-group', 'm-1'):
        check('second-port-without-group', sorted(len(p['security_groups']) for p in ports(d, 'm-1')) == [0, 1])
    check('... and back', len(ports(d, 'm-1')) == 1)
    cidr = kubectl('get', 'node', 'm-1', '-o', 'jsonpath={.spec.podCIDR}')
    hops = lambda: sum(r['destination'] == cidr for r in routes(d))
    with fault('duplicate-route', 'm-1'):
        check('duplicate-route', hops() == 2, routes(d))
    with fault('missing-route', 'm-1'):
        check('missing-route', hops() == 0, routes(d))
    check('... and back', hops() == 1, routes(d))
    with fault('route-to-dead'):
        check('route-to-dead', any(r['destination'] == '198.19.250.0/24' for r in routes(d)))
    with fault('route-limit', '2'):
        r = rig('fault', 'route-to-dead', '198.19.251.0/24', ok=False)
        check('route-limit', r.returncode != 0 and 'OverQuota' in r.stderr, r.stderr)
    with fault('errored', 'm-2', 'the machine is on fire'):
        s = server(d, 'm-2')
        check('errored with a message', s['status'] == 'ERROR' and s['fault']['message'] == 'the machine is on fire', s)
    check('... and back', server(d, 'm-2')['status'] == 'ACTIVE' and 'fault' not in server(d, 'm-2'))
    with fault('spawn-fail', '^bad-'):
        rig('machine', 'create', 'bad-1')
        check('spawn-fail', server(d, 'bad-1')['status'] == 'ERROR', server(d, 'bad-1'))
    with fault('stuck-build', '^slow-'):
        rig('machine', 'create', 'slow-1', '--no-wait')
        check('stuck-build', within(10, lambda: server(d, 'slow-1')['OS-EXT-STS:task_state'] == 'spawning'))
        time.sleep(1)
        check('... stays so', server(d, 'slow-1')['status'] == 'BUILD')
    check('... and released', within(15, lambda: server(d, 'slow-1')['status'] == 'ACTIVE'))
    rig('fault', 'stuck-deleting', 'slow-1')
    check('stuck-deleting', server(d, 'slow-1')['OS-EXT-STS:task_state'] == 'deleting')
    rig('fault', 'stuck-deleting', 'slow-1', '--off')
    check('... and released: gone', within(15, lambda: server(d, 'slow-1') is None))
    with fault('console', 'm-1', '-', text='Kernel panic - not syncing\n'):
        out = d.nova('POST', '/servers/%s/action' % server(d, 'm-1')['id'], {'os-getConsoleOutput': {}})['output']
        check('console', out == 'Kernel panic - not syncing\n', out)
    with fault('host-down'):
        rig('machine', 'create', 'homeless')
        check('host-down: a new machine finds no host', 'No valid host' in server(d, 'homeless')['fault']['message'])
    with fault('shutoff', 'm-2'):
        check('shutoff', server(d, 'm-2')['status'] == 'SHUTOFF')
        check('... and its node falls silent', within(60, lambda: ready('m-2') == 'Unknown'), ready('m-2'))
    check('... and back', within(30, lambda: ready('m-2') == 'True'), ready('m-2'))
    rig('machine', 'delete', 'bad-1', 'homeless')
    check('machines are deleted', server(d, 'bad-1') is None)


def process_faults():
    quick = client(timeout=2)
    for service, ask in (('nova', lambda: client(2).nova('GET', '/servers')), ('neutron', lambda: quick.neutron('GET', '/ports')), ('keystone', lambda: client(2))):
        with fault(service + '-hang'):
            check(service + '-hang: no answer', fails(lambda: quick.call(service, 'GET', '/')) == 'TimeoutError', fails(lambda: quick.call(service, 'GET', '/')))
        check('... and back', within(10, lambda: fails(ask) is None))
        with fault(service + '-kill'):
            check(service + '-kill: the connection breaks', fails(ask) is not None)
        check('... and back', within(10, lambda: fails(ask) is None), fails(ask))
    answers = lambda conf: kubectl('get', 'nodes', through=conf, ok=False) != ''
    for word in ('hang', 'kill'):
        with fault('api-' + word):
            check('api-%s: no answer' % word, not answers('admin.conf') and not answers('proxy.conf'))
        check('... and back', within(20, lambda: answers('admin.conf') and answers('proxy.conf')))
    rig('fault', 'node-delete', 'm-3')
    check('node-delete', within(5, lambda: ready('m-3') == ''))


def calls():
    return json.loads(rig('calls').stdout)


def proxy_faults():
    d = client()
    listing = lambda limit=1000: d.call('nova', 'GET', '/servers/detail?limit=%d' % limit, microversion='2.52')
    rig('calls', '--reset')
    listing(), listing(), d.call('neutron', 'PUT', '/ports/' + ports(d, 'm-1')[0]['id'], {'port': {'description': 'x'}})
    c = calls()
    check('calls are counted by class', c['services']['nova']['GET /v2.1/servers/detail']['calls'] == 3 and c['total']['writes'] == 1, c)
    rig('fault', 'nova-429', '2', '7')
    seen = [listing() for _ in range(3)]
    check('nova-429 twice, then well', [r.status for r in seen] == [429, 429, 200] and seen[0].headers['Retry-After'] == '7')
    with fault('nova-page-fails'):
        first = listing(1)
        check('nova-page-fails', first.status == 200 and d.call('nova', 'GET', '/servers/detail?limit=1&marker=' + first.body['servers'][0]['id']).status == 500)
    with fault('nova-empty-list'):
        check('nova-empty-list', listing().status == 200 and listing().body == {'servers': []})
    some = server(d, 'm-1')['id']
    with fault('nova-empty-list', '404'):
        check('nova-empty-list 404: one is denied by its id, too', d.call('nova', 'GET', '/servers/' + some).status == 404)
    with fault('neutron-elsewhere'):
        group = d.call('neutron', 'GET', '/security-groups').body
        one = d.call('neutron', 'GET', '/ports/' + some).status
        check('neutron-elsewhere: no group is listed, no port is found', group == {'security_groups': []} and one == 404, group)
    rig('fault', 'neutron-write-429', '1')
    renamed = [d.call('neutron', 'PUT', '/ports/' + ports(d, 'm-1')[0]['id'], {'port': {'description': 'y'}}).status for _ in range(2)]
    check('neutron-write-429 once: a write is refused, a read is not', renamed == [429, 200], renamed)
    with fault('neutron-429'):
        check('neutron-429', d.call('neutron', 'GET', '/ports').status == 429)
    rig('fault', 'nova-401-once')
    check('nova-401-once', [listing().status, listing().status] == [401, 200])
    with fault('token-expired'):
        check('token-expired: the old one is refused, a new one works', listing().status == 401 and client().call('nova', 'GET', '/servers').status == 200)
    with fault('nova-slow', '700'):
        began = time.time()
        listing()
        check('nova-slow', time.time() - began > 0.7)
    with fault('nova-cut'):
        check('nova-cut', fails(listing) == 'IncompleteRead', fails(listing))
    with fault('nova-delete-lost'):
        check('nova-delete-lost', d.call('nova', 'DELETE', '/servers/' + server(d, 'm-3')['id']).status == 204)
        time.sleep(1)
        check('... the machine is still there', server(d, 'm-3')['OS-EXT-STS:task_state'] is None)
    with fault('neutron-port-put-lost'):
        p = ports(d, 'm-1')[0]
        r = d.call('neutron', 'PUT', '/ports/' + p['id'], {'port': {'security_groups': []}})
        check('neutron-port-put-lost', r.status == 200 and r.body['port']['security_groups'] == [] and ports(d, 'm-1')[0]['security_groups'] == p['security_groups'])
    with fault('nova-timeout-after-effect'):
        victim = server(d, 'm-3')['id']
        check('nova-timeout-after-effect: no answer', fails(lambda: client(2).call('nova', 'DELETE', '/servers/' + victim)) == 'TimeoutError')
    check('... but the effect', within(15, lambda: server(d, 'm-3') is None))
    with fault('kube-429'):
        with contextlib.suppress(Exception):
            urllib.request.urlopen(description()['kubernetes']['proxyServer'] + '/api/v1/nodes', timeout=5)
            check('kube-429', False, 'an answer')
        check('kube-429', calls()['services']['kube']['GET /api/v1/nodes']['statuses'].get('429'), calls()['services']['kube'])
    with fault('nodes-empty-list'):
        check('nodes-empty-list', kubectl('get', 'nodes', '-o', 'name', through='proxy.conf') == '' and 'm-1' in kubectl('get', 'nodes', '-o', 'name'))
    check('watches stream', 'reached' in watch('reached'))
    with fault('nodes-watch-gap'):
        check('nodes-watch-gap', 'lost' not in watch('lost'))
    with fault('nodes-watch-gone'):
        check('nodes-watch-gone', '"code": 410' in watch('again'))


def watch(value):
    """What a node watch through the proxy shows within two seconds of a change."""
    began = json.loads(kubectl('get', '--raw', '/api/v1/nodes'))['metadata']['resourceVersion']
    seen = b''
    with urllib.request.urlopen(description()['kubernetes']['proxyServer'] + '/api/v1/nodes?watch=1&resourceVersion=' + began, timeout=2) as stream:
        kubectl('label', 'node', 'm-1', '--overwrite', 'selftest=' + value)
        with contextlib.suppress(OSError):
            while line := stream.readline():
                seen += line
                if value.encode() in line:
                    break
    return seen.decode()


def cloud_controller():
    rig('start', 'occm')
    rig('machine', 'create', 'c-1')
    rig('machine', 'node', 'c-1', '--no-provider-id', '--no-route', '--taint-uninitialized')
    d = client()
    spec = lambda: json.loads(kubectl('get', 'node', 'c-1', '-o', 'json'))['spec']
    check('the cloud controller initialises a node', within(30, lambda: spec().get('providerID', '').endswith(server(d, 'c-1')['id']) and not [
        t for t in spec().get('taints', []) if 'uninitialized' in t['key']]), spec())
    check('... and writes its route', within(30, lambda: any(r['destination'] == spec()['podCIDR'] for r in routes(d))), routes(d))
    rig('machine', 'delete', 'c-1')
    check('... and deletes the node when its server is gone and it fell silent', within(90, lambda: ready('c-1') == ''), ready('c-1'))
    rig('stop', 'occm')


def ec2(action, **more):
    """An answer of EC2 through the proxy, as text."""
    form = urllib.parse.urlencode(dict(more, Action=action, Version='2016-11-15')).encode()
    scope = 'AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=x'
    request = urllib.request.Request(description()['ec2']['endpoint'], data=form, headers={'Authorization': scope})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.read().decode()


def instances():
    rig('start', 'ec2')
    made = json.loads(rig('instance', 'create', *('e-%d' % n for n in range(6)), '--json').stdout)
    first = made[0]
    check('six instances run', all(i['state'] == 'running' for i in made), made)
    check('a client sees them, and their cluster by its tag', all(i['id'] in ec2('DescribeInstances') for i in made) and 'kubernetes.io/cluster/rig' in ec2('DescribeInstances'))
    with fault('ec2-unknown-young', '600'):
        check('ec2-unknown-young: not in lists', first['id'] not in ec2('DescribeInstances'))
        check('... and not by its id', 'InvalidInstanceID.NotFound' in ec2('DescribeInstances', **{'InstanceId.1': first['id']}))
    with fault('ec2-pages', '5'):
        page = ec2('DescribeInstances')
        check('ec2-pages', page.count('<instanceId>') == 5 and 'nextToken' in page, page[:300])
    with fault('ec2-page-fails', '5'):
        token = re.search('<nextToken>([^<]+)', ec2('DescribeInstances')).group(1)
        check('ec2-page-fails: the second page', 'InternalError' in ec2('DescribeInstances', NextToken=token))
    for name, word in (('ec2-throttle', 'RequestLimitExceeded'), ('ec2-500', 'InternalError')):
        with fault(name):
            check(name, word in ec2('DescribeInstances'))
    with fault('ec2-empty-list'):
        check('ec2-empty-list', '<instanceId>' not in ec2('DescribeInstances'))
    with fault('ec2-check-impaired'):
        check('ec2-check-impaired', 'impaired' in ec2('DescribeInstanceStatus'))
    with fault('ec2-no-right'):
        check('ec2-no-right: a write', 'UnauthorizedOperation' in ec2('RebootInstances', **{'InstanceId.1': first['id']}))
        check('... and no read', first['id'] in ec2('DescribeInstances'))
    rig('start', 'awsccm')
    rig('instance', 'node', 'e-0', 'e-1', '--not-ready')
    rig('instance', 'terminate', 'e-0')
    check('the AWS cloud controller deletes the node of an instance that is gone', within(60, lambda: ready(first['node']) == ''), ready(first['node']))
    check('... and that one alone', ready(made[1]['node']) == 'False', ready(made[1]['node']))
    rig('stop', 'awsccm')
    rig('stop', 'ec2')


def real_nodes():
    if os.getuid() != 0:
        return not_run('real nodes', 'they need root')
    if subprocess.run(['unshare', '-m', '-u', 'true'], capture_output=True).returncode:
        return not_run('real nodes', 'unshare -m -u is refused here')
    rig('node', 'up', 'real-a')
    rig('node', 'up', 'real-b')
    check('two real kubelets joined by kubeadm are Ready', ready('real-a') == 'True' and ready('real-b') == 'True')
    rig('fault', 'node-delete', 'real-a')
    check('a deleted node stays away while its kubelet runs', within(8, lambda: ready('real-a') != '') is False)
    rig('node', 'restart-kubelet', 'real-a')
    check('... and a restart of the kubelet brings it back', within(20, lambda: ready('real-a') == 'True'), ready('real-a'))
    r = rig('node', 'exec', 'real-b', 'bash', '-c', 'hostname; systemctl is-active kubelet; ls /etc/kubernetes')
    check('a command runs inside a node', r.stdout.split()[:3] == ['real-b', 'active', 'kubelet.conf'], r.stdout)
    rig('node', 'stop-kubelet', 'real-b')
    check('a stopped kubelet leaves its node Unknown', within(60, lambda: ready('real-b') == 'Unknown'), ready('real-b'))
    rig('node', 'down', 'real-b', '--forget')
    check('a node is taken down and forgotten', ready('real-b') == '')


def nodes_with_one_thing_wrong():
    if os.getuid() != 0:
        return not_run('spoiled nodes', 'they need root')
    def said(log):
        with open(home + '/self/nodes/real-s/log/' + log, errors='replace') as f:
            return f.read()
    rig('node', 'up', 'real-s', '--spoil', 'swap')
    check('--spoil swap', 'running with swap on is not supported' in said('kubelet.log'))
    rig('node', 'down', 'real-s', '--forget')
    for name, says in (('csr-approver-off', 'TLS bootstrap'), ('cluster-info-broken', 'cluster-info'), ('api-certificate-ahead', 'not yet valid')):
        with fault(name):
            rig('node', 'up', 'real-s', '--spoil', 'none')
            check(name, says.lower() in said('join.log').lower())
            rig('node', 'down', 'real-s')


def leftovers(before):
    rig('down', '--all')
    check('no process is left', processes() == [], processes())
    check('no state is left', not os.path.exists(home + '/self'))
    after = outside()
    for what in before:
        check('%s: as before' % what, after[what] == before[what], after[what])


def main():
    before = outside()
    began = time.time()
    try:
        for part in (lifecycle, machines, cloud_faults, process_faults, proxy_faults, cloud_controller, instances, real_nodes, nodes_with_one_thing_wrong):
            print('--- %s' % part.__name__.replace('_', ' '), flush=True)
            try:
                part()
            except Exception as problem:
                check('%s runs to its end' % part.__name__, False, '%s: %s' % (type(problem).__name__, problem))
                if part is lifecycle:
                    break
    finally:
        print('--- down', flush=True)
        leftovers(before)
        shutil.rmtree(home, ignore_errors=True)
    print('\n%(passed)d passed, %(failed)d failed, %(not run)d not run' % counts + ' · %.0f s' % (time.time() - began))
    sys.exit(1 if counts['failed'] else 0)


main()
