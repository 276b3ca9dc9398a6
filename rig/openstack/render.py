"""Fill etc/*.in into $RIG_STATE/etc: the services' configuration for this rig's paths and ports.

Services talk to each other through the `internal` endpoints (the real ports); only clients are sent to `public` ones, which are
the fault proxy's. Knobs: RIG_TOKEN_SECONDS (life of a token), RIG_MAX_ROUTES (extra routes per router).
"""
import glob
import os
import re

e = os.environ
here = os.path.dirname(os.path.abspath(__file__))
credentials = '''auth_type = password
auth_url = http://127.0.0.1:%(KEYSTONE_PORT)s/v3
username = svc
password = rigsvc
user_domain_name = Default
project_name = service
project_domain_name = Default''' % e
region = '\nregion_name = RegionOne'
values = {
    'STATE': e['RIG_STATE'], 'VENV': e['RIG_VENV'],
    'GLANCE_PORT': e['GLANCE_PORT'],
    'TOKEN_SECONDS': e.get('RIG_TOKEN_SECONDS', '3600'),
    'MAX_ROUTES': e.get('RIG_MAX_ROUTES', '30'),
    'SVCAUTH': credentials + region,
    'AUTHTOKEN': 'www_authenticate_uri = http://127.0.0.1:%s/v3\ninterface = internal\n%s' % (e['PROXY_KEYSTONE_PORT'], credentials),
}
os.makedirs(e['RIG_STATE'] + '/etc', exist_ok=True)
for source in glob.glob(here + '/etc/*.in'):
    with open(source) as f:
        text = re.sub(r'@(\w+)@', lambda m: values[m.group(1)], f.read())
    with open(os.path.join(e['RIG_STATE'], 'etc', os.path.basename(source)[:-3]), 'w') as f:
        f.write(text)
