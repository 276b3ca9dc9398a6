"""Point the Keystone catalogue at the ports of this run, straight in the database (no service runs yet).

`public` is the fault proxy for compute, network and identity: what clients take. `internal` and `admin` are the real ports: what
the services, the cloud controller and the rig itself take. So an armed fault hits clients only.
"""
import os
import pymysql

e = os.environ
db = pymysql.connect(unix_socket=e['RIG_STATE'] + '/mysql.sock', user='root', database='keystone', autocommit=True)
cursor = db.cursor()
for kind, name, path in (('identity', 'KEYSTONE', '/v3'), ('compute', 'NOVA', '/v2.1'), ('network', 'NEUTRON', ''),
                         ('placement', 'PLACEMENT', ''), ('image', 'GLANCE', '')):
    real = e[name + '_PORT']
    for interface, port in (('public', e.get('PROXY_%s_PORT' % name, real)), ('internal', real), ('admin', real)):
        cursor.execute('update endpoint e join service s on e.service_id = s.id set e.url = %s where s.type = %s and e.interface = %s',
                       ('http://127.0.0.1:%s%s' % (port, path), kind, interface))
