#!/usr/bin/env python3
"""Run one OpenStack service in this process, on 127.0.0.1.

    serve.py keystone|placement|glance|neutron|nova PORT
    serve.py all NAME:PORT ...      import what they share once, then fork

The WSGI application is the project's own (<project>.wsgi.*), served by
cheroot with a thread pool.  `nova` additionally starts the real conductor,
scheduler and compute services in the same process, so that they can talk over
oslo.messaging's in-memory transport and no message broker is needed.
"""
import os
import signal
import sys
import threading
import time
import traceback

T0 = time.time()


def app_keystone():
    from keystone.wsgi.api import application
    return application


def app_placement():
    from placement.wsgi.api import application
    return application


def app_glance():
    from glance.wsgi.api import application
    return application


def app_neutron():
    from neutron.wsgi.api import application
    return application


def hosts_look_down():
    import pymysql
    pymysql.connect(unix_socket=os.environ['RIG_STATE'] + '/mysql.sock', user='root', database='nova', autocommit=True).cursor().execute(
        "update services set last_seen_up='2000-01-01' where topic='compute'")


def app_nova():
    from nova.wsgi.osapi_compute import application
    import nova.conf
    import nova.virt
    # nova looks for drivers inside its own package only
    nova.virt.__path__.append(os.path.join(
        os.path.dirname(os.path.abspath(__file__)), 'plugin', 'nova_virt'))
    from nova.compute import rpcapi as compute_rpcapi
    from nova.conductor import rpcapi as conductor_rpcapi
    from nova import context
    from nova import objects
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler_rpcapi
    from nova import service
    import os_vif

    # nova-compute refuses a second start without this file; the fake driver
    # never writes it
    ident = os.path.join(nova.conf.CONF.state_path, 'compute_id')
    if not os.path.exists(ident):
        with open(ident, 'w') as f:
            f.write('5b1d1f3e-6c1a-4b0e-9f5e-0f6f0a3b8c12')
    # a host that still looks up from before, and has not started yet, would be given a server and then, while it starts,
    # call that server's build a failed one
    hosts_look_down()
    os_vif.initialize()
    objects.Service.enable_min_version_cache()
    running = []

    def start(host, binary, topic, **kw):
        svc = service.Service.create(host=host, binary=binary, topic=topic,
                                     **kw)
        svc.start()
        # first heartbeat now, not seconds later: a restored database holds an
        # old one, and the scheduler skips hosts that look down
        svc.service_ref.report_count += 1
        svc.service_ref.save()
        running.append(svc)

    start('ctl', 'nova-conductor', conductor_rpcapi.RPC_TOPIC)
    start('ctl', 'nova-scheduler', scheduler_rpcapi.RPC_TOPIC)
    hosts = os.environ.get('RIG_HOSTS', ','.join(
        'fake%d' % i for i in range(1, 11))).split(',')

    def computes(names):
        for host in names:
            start(host, 'nova-compute', compute_rpcapi.RPC_TOPIC,
                  topic_alt=compute_rpcapi.RPC_TOPIC_ALT)
        host_mapping.discover_hosts(context.get_admin_context())

    # one host before the API answers, the others (0.2 s each) while it does
    computes(hosts[:1])
    threading.Thread(target=computes, args=(hosts[1:],), daemon=True).start()
    app_nova.running = running
    return application


def logged(name, app):
    out = open(os.path.join(os.environ['RIG_STATE'], 'log', name + '.access'), 'a', buffering=1)

    def wrapped(env, start):
        t, c, st = time.time(), time.thread_time(), []

        def start2(status, headers, exc=None):
            st.append(status[:3])
            return start(status, headers, exc)
        body = b''.join(app(env, start2))
        out.write('%.3f %s %s %s%s %.0f ms, cpu %.0f ms, %d bytes, %s\n' % (
            t, st and st[0], env['REQUEST_METHOD'], env['SCRIPT_NAME'] + env['PATH_INFO'],
            '?' + env['QUERY_STRING'] if env['QUERY_STRING'] else '',
            (time.time() - t) * 1e3, (time.thread_time() - c) * 1e3, len(body),
            env.get('HTTP_USER_AGENT', '')[:40]))
        return [body]
    return wrapped


SHARED = """sqlalchemy sqlalchemy.orm sqlalchemy.dialects.mysql
sqlalchemy.ext.hybrid pymysql oslo_config.cfg oslo_log.log
oslo_serialization.jsonutils oslo_context.context oslo_policy.policy
oslo_middleware oslo_db.sqlalchemy.enginefacade oslo_db.api
oslo_concurrency.lockutils oslo_cache stevedore webob paste.deploy paste.urlmap
routes.middleware requests keystoneauth1.loading keystoneauth1.session
keystoneclient.v3.client keystonemiddleware.auth_token osprofiler.web jsonschema
cryptography.fernet netaddr yaml cheroot.wsgi alembic jsonpatch
oslo_reports.guru_meditation_report""".split()


def all_of_them(wanted):
    """Fork one child per service; write its pid file; exit."""
    import importlib
    import setproctitle
    for m in SHARED:        # none of these may pull in eventlet: nova refuses
        importlib.import_module(m)
    assert threading.active_count() == 1 and 'eventlet' not in sys.modules
    state = os.environ['RIG_STATE']
    # the catalogue names today's ports only after the database is up; no service may read (and cache) it earlier
    while not os.path.exists(state + '/database-ready'):
        if time.time() - T0 > 90:
            sys.exit('serve.py: the database did not become ready')
        time.sleep(0.02)
    for want in wanted:
        name, port = want.split(':')
        pid = os.fork()
        if pid:
            with open('/proc/%d/stat' % pid) as f:
                began = f.read().rsplit(')', 1)[1].split()[19]
            with open('%s/pid/%s' % (state, name), 'w') as f:
                f.write('%d %s\n' % (pid, began))
            continue
        os.setsid()
        out = os.open('%s/log/%s.log' % (state, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        setproctitle.setproctitle('%s/serve.py %s --state=%s' % (
            os.path.dirname(os.path.abspath(__file__)), name, state))
        sys.argv[1:] = [name, port]
        return True
    return False


def main():
    if sys.argv[1] == 'all' and not all_of_them([a for a in sys.argv[2:] if not a.startswith('--')]):
        return
    name, port = sys.argv[1], int(sys.argv[2])
    sys.argv = [name]
    try:
        app = globals()['app_' + name]()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    if os.environ.get('RIG_ACCESS_LOG'):
        app = logged(name, app)
    from cheroot import wsgi
    server = wsgi.Server(('127.0.0.1', port), app, server_name='127.0.0.1',
                         numthreads=int(os.environ.get('RIG_THREADS', '16')),
                         request_queue_size=128)
    server.prepare()
    signal.signal(signal.SIGTERM, lambda *a: os._exit(0))
    signal.signal(signal.SIGINT, lambda *a: os._exit(0))
    print('%s ready on 127.0.0.1:%d after %.2f s, %d threads' % (
        name, port, time.time() - T0, threading.active_count()), flush=True)
    server.serve()


main()
