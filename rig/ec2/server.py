"""The rig's EC2: moto's server, with what moto leaves out of an instance's life and the rig can supply.

    server.py -H HOST -p PORT            moto's own arguments

Data: the wrapped methods of moto's Instance; $RIG_STATE/ec2-boots.jsonl gets a line for each power event of a guest, which no
API of EC2 tells: docs/internals/agreement.md has the table of what is like EC2 and what is not. Not here: guests, Auto Scaling's own decisions.

* A stop, a start and an end take STEP seconds, with the states between (EC2, "Instance lifecycle"). moto changes the state at once.
* A start sets the launch time (EC2 API, Instance.launchTime: "the time that the instance was last launched"). moto keeps it.
* A console says what stands in $RIG_STATE/ec2-consoles/ID, where there is such a file. moto's says the same for all.
* What a group launches has the instance profile of its launch configuration. moto leaves it out.
* A reboot changes nothing that the API shows (EC2 API, RebootInstances: "it only queues a request to reboot"). moto does the same.
"""
import json
import os
import sys
import threading
import time

from moto.autoscaling.models import FakeAutoScalingGroup
from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance
from moto.ec2.responses.general import General
from moto.ec2.utils import Base64EncodedString
from moto.server import main

STEP = 2.0
PENDING, SHUTTING_DOWN, STOPPING = ('pending', 0), ('shutting-down', 32), ('stopping', 64)
writing = threading.Lock()


def note(instance, event):
    with writing, open(os.environ['RIG_STATE'] + '/ec2-boots.jsonl', 'a') as f:
        f.write(json.dumps({'instance': instance.id, 'event': event, 'at': time.time()}) + '\n')


def set_state(instance, state):
    instance._state.name, instance._state.code = state


def by_steps(method, between, event):
    """The state between at once, and the one that moto sets after STEP seconds, unless something else happened meanwhile."""
    def act(self):
        before = method(self)
        if before.name == self._state.name:
            return before
        after = (self._state.name, self._state.code)
        set_state(self, between)
        self._rig_step = step = object()

        def end():
            if self._rig_step is step:
                set_state(self, after)
                note(self, event)
        timer = threading.Timer(STEP, end)
        timer.daemon = True
        timer.start()
        return before
    return act


def started(method):
    def act(self):
        if self._state.name != 'running':
            self.launch_time = utcnow()
        return method(self)
    return act


def rebooted(method):
    def act(self):
        method(self)
        note(self, 'reboot')
    return act


def console(method):
    def act(self):
        told = method(self)
        try:
            with open('%s/ec2-consoles/%s' % (os.environ['RIG_STATE'], told.result['InstanceId'])) as f:
                told.result['Output'] = Base64EncodedString.from_raw_string(f.read())
        except FileNotFoundError:
            pass
        return told
    return act


def with_role(method):
    def act(self, *arguments, **named):
        before = {state.instance_id for state in self.instance_states}
        method(self, *arguments, **named)
        role = self.launch_config and self.launch_config.iam_instance_profile
        for state in self.instance_states:
            if role and state.instance_id not in before:
                self.autoscaling_backend.ec2_backend.associate_iam_instance_profile(state.instance_id, iam_instance_profile_name=role)
    return act


Instance.start = by_steps(started(Instance.start), PENDING, 'start')
Instance.stop = by_steps(Instance.stop, STOPPING, 'stop')
Instance.terminate = by_steps(Instance.terminate, SHUTTING_DOWN, 'end')
Instance.reboot = rebooted(Instance.reboot)
FakeAutoScalingGroup.replace_autoscaling_group_instances = with_role(FakeAutoScalingGroup.replace_autoscaling_group_instances)
General.get_console_output = console(General.get_console_output)

if __name__ == '__main__':
    main(sys.argv[1:])
