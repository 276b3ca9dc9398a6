"""Faults of a whole cluster that a joining node runs into: approvals, rights, what the cluster publishes of itself, its certificate.

Data: through the API as administrator; what was there is kept as it was read and put back. The API server's certificate is a file.
Nothing here waits for a node to notice.
"""
import datetime
import json
import os
import subprocess
import tempfile

from fault_kit import fault
from machine import STATE, Trouble, kubectl, root


def apply(thing):
    for field in ('resourceVersion', 'uid', 'creationTimestamp', 'managedFields'):
        thing['metadata'].pop(field, None)
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        json.dump(thing, f)
        f.flush()
        kubectl('replace', '--force', '-f', f.name)


def without(a, *thing):
    """Deletes it, or makes it again as it was."""
    if a.off:
        return apply(a.recall())
    a.keep(json.loads(kubectl('get', *thing, '-o', 'json')))
    kubectl('delete', *thing)


@fault('csr-approver-off', '', 'no approver approves the client certificates of new nodes: requests stay Pending')
def csr_approver_off(a):
    without(a, 'clusterrolebinding', 'kubeadm:node-autoapprove-bootstrap')


@fault('bootstrap-rights-off', '', 'a bootstrap token may not ask for a certificate any more')
def bootstrap_rights_off(a):
    without(a, 'clusterrolebinding', 'kubeadm:kubelet-bootstrap')


@fault('cluster-info-broken', '', 'the ConfigMap cluster-info holds a kubeconfig that cannot be read')
def cluster_info_broken(a):
    if a.off:
        return apply(a.recall())
    known = json.loads(kubectl('-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'json'))
    a.keep(known)
    kubectl('-n', 'kube-public', 'patch', 'configmap', 'cluster-info', '-p',
            json.dumps({'data': {'kubeconfig': 'apiVersion: v1\nkind: Config\nclusters: ['}}))


def certificate_ahead(stem, days):
    """The same certificate again, valid from so many days ahead. Only `openssl ca` takes a beginning."""
    pki = STATE + '/pki/'
    names = subprocess.run(['openssl', 'x509', '-in', pki + stem + '.crt', '-noout', '-ext', 'subjectAltName'], check=True, capture_output=True, text=True).stdout
    begin = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    with tempfile.TemporaryDirectory() as work:
        open(work + '/index', 'w').close()
        with open(work + '/ca.conf', 'w') as f:
            f.write('[ca]\ndefault_ca = d\n[d]\ndatabase = %s/index\nnew_certs_dir = %s\ndefault_md = sha256\npolicy = p\nrand_serial = yes\n'
                    '[p]\ncommonName = supplied\n[e]\nextendedKeyUsage = serverAuth\nsubjectAltName = %s\n'
                    % (work, work, names.strip().splitlines()[-1].strip().replace('IP Address:', 'IP:')))
        done = subprocess.run(['openssl', 'ca', '-batch', '-notext', '-config', work + '/ca.conf', '-extensions', 'e', '-cert', pki + 'ca.crt', '-keyfile', pki + 'ca.key',
                               '-in', pki + stem + '.csr', '-out', work + '/ahead.crt', '-startdate', begin.strftime('%Y%m%d%H%M%SZ'),
                               '-enddate', (begin + datetime.timedelta(days=1)).strftime('%Y%m%d%H%M%SZ')], capture_output=True, text=True)
        if done.returncode:
            raise Trouble('openssl could not make a certificate that begins later: ' + done.stderr.strip())
        with open(work + '/ahead.crt') as f:
            return f.read()


def serve(certificate):
    """The API server would read the file again by itself, after up to a minute."""
    with open(STATE + '/pki/apiserver.crt', 'w') as f:
        f.write(certificate)
    for verb in ('stop', 'start'):
        r = subprocess.run([root + '/rig', verb, 'kube-apiserver'], capture_output=True, text=True)
        if r.returncode:
            raise Trouble(r.stderr.strip())


@fault('api-certificate-ahead', '', 'the API server\'s certificate begins tomorrow: to its clients, as if the own clock were a day behind (restarts the API server)')
def api_certificate_ahead(a):
    if a.off:
        return serve(a.recall())
    with open(STATE + '/pki/apiserver.crt') as f:
        a.keep(f.read())
    serve(certificate_ahead('apiserver', 1))
