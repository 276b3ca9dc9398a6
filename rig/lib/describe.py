"""Write what people and tests need to know about a rig, from what is in its state directory.

    describe.py STATE

Writes rig.json (everything), env (shell exports), clouds.yaml, roster.yaml and roster-proxy.yaml. Run again whenever a part
starts or ends, also by several commands at once: one after another, so that the newest state is what stands in the end. Reads ports,
pid/, parts, cloud.json, ca-hash. Starts and asks nothing.
"""
import fcntl
import json
import os
import shlex
import sys

state = sys.argv[1]
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
e = os.environ
turn = open(os.path.join(state, 'describe.lock'), 'w')
fcntl.flock(turn, fcntl.LOCK_EX)        # until we end


def read(name, default=None):
    try:
        with open(os.path.join(state, name)) as f:
            return f.read()
    except OSError:
        return default


def write(name, text):
    with open(os.path.join(state, name + '.new'), 'w') as f:
        f.write(text)
    os.replace(os.path.join(state, name + '.new'), os.path.join(state, name))


def url(port, path='', scheme='http'):
    return '%s://127.0.0.1:%d%s' % (scheme, port, path)


ports = {k: int(v) for k, v in (line.split('=') for line in read('ports').split())}
parts = read('parts', '').split()
pids = {p: int(text.split()[0]) for p in sorted(os.listdir(state + '/pid')) for text in [read('pid/' + p)] if text}   # one may end meanwhile
instances = json.loads(read('ec2.json', 'null'))
cloud = json.loads(read('cloud.json', 'null'))
path = lambda name: os.path.join(state, name)

rig = {
    'name': e['RIG_NAME'], 'state': state, 'parts': parts, 'ports': ports, 'pids': pids,
    'control': url(ports['PROXY_CONTROL_PORT']),
    'pidFiles': path('pid'), 'logs': path('log'), 'calls': path('log/calls.jsonl'), 'programs': e['RIG_BIN'], 'rig': os.path.join(root, 'rig'),
}
env = {'RIG_NAME': e['RIG_NAME'], 'RIG_HOME': e['RIG_HOME'], 'RIG_STATE': state, 'RIG_CONTROL_URL': rig['control']}
if 'kubernetes' in parts:
    rig['kubernetes'] = {
        'server': url(ports['API_PORT'], scheme='https'), 'kubeconfig': path('admin.conf'), 'context': 'rig',
        'proxyServer': url(ports['PROXY_KUBE_PORT']), 'proxyKubeconfig': path('proxy.conf'), 'ca': path('pki/ca.crt'), 'auditLog': path('audit.log'),
        'caHash': (read('ca-hash') or '').strip(), 'bootstrapToken': (read('bootstrap-token') or '').strip(),
        'clusterCIDR': '198.19.0.0/16', 'kubectl': e.get('RIG_KUBECTL') or os.path.join(e['RIG_BIN'], 'kubectl')}
    env.update(KUBECONFIG=path('admin.conf'), RIG_KUBECONFIG_PROXY=path('proxy.conf'), RIG_KUBECTL=rig['kubernetes']['kubectl'])
if 'openstack' in parts and cloud:
    through = {k: url(ports['PROXY_%s_PORT' % k.upper()], p) for k, p in (('keystone', '/v3'), ('nova', '/v2.1'), ('neutron', ''))}
    direct = {k: url(ports[k.upper() + '_PORT'], p) for k, p in (('keystone', '/v3'), ('nova', '/v2.1'), ('neutron', ''), ('placement', ''), ('glance', ''))}
    rig['openstack'] = dict(cloud, cloudsFile=path('clouds.yaml'), region='RegionOne', endpoints=through, directEndpoints=direct,
                            faults=path('faults'), users={'demo': 'demo', 'demo-reader': 'demo', 'other': 'other', 'admin': 'rigadmin'})

    def entry(name, auth, user, password, project, interface):
        return ('  %s:\n    region_name: RegionOne\n    interface: %s\n    identity_api_version: 3\n    auth:\n      auth_url: %s\n      username: %s\n'
                '      password: %s\n      project_name: %s\n      user_domain_name: Default\n      project_domain_name: Default\n'
                % (name, interface, auth, user, password, project))
    write('clouds.yaml', '# demo and reader go through the fault proxy; admin goes to the services themselves.\nclouds:\n'
          + entry('demo', through['keystone'], 'demo', 'demo', 'demo', 'public')
          + entry('reader', through['keystone'], 'demo-reader', 'demo', 'demo', 'public')
          + entry('admin', direct['keystone'], 'admin', 'rigadmin', 'admin', 'internal'))
    env.update(OS_CLIENT_CONFIG_FILE=path('clouds.yaml'), OS_CLOUD='demo')
if 'kubernetes' in parts and 'openstack' in parts and cloud:
    with open(os.path.join(root, 'templates/roster.yaml')) as f:
        template = f.read()
    for name, kubeconfig in (('roster.yaml', 'admin.conf'), ('roster-proxy.yaml', 'proxy.conf')):
        text = template
        for key, value in (('KUBECONFIG', path(kubeconfig)), ('CLOUDS', path('clouds.yaml')), ('ROUTER', cloud['router'])):
            text = text.replace('@%s@' % key, value)
        write(name, text)
    rig['roster'], rig['rosterProxy'] = path('roster.yaml'), path('roster-proxy.yaml')
    env.update(RIG_ROSTER=rig['roster'], RIG_ROSTER_PROXY=rig['rosterProxy'])
if 'ec2' in pids and instances:
    rig['ec2'] = dict(instances, endpoint=url(ports['PROXY_EC2_PORT']), directEndpoint=url(ports['EC2_PORT']))
    env.update({key: e[key] for key in ('AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_EC2_METADATA_DISABLED')},
               AWS_ENDPOINT_URL=rig['ec2']['endpoint'])
nodes = []
for name in sorted(os.listdir(state + '/nodes')) if os.path.isdir(state + '/nodes') else []:
    nodes.append({'name': name, 'directory': path('nodes/' + name)})
rig['nodes'] = nodes
write('rig.json', json.dumps(rig, indent=2) + '\n')
write('env', ''.join('export %s=%s\n' % (k, shlex.quote(v)) for k, v in env.items()))
