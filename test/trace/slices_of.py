#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# From what sim_random --trace prints: for each endpoint, by its number in the trace file, its
# states, each with the stimulus that led to it. As JSON.
import json
import sys

number = {'A': -1, 'B': 0}
endpoints = {}
with open(sys.argv[1], encoding='utf-8') as file:
    for line in file:
        words = line.split()
        if len(words) != 3 or words[0] not in ('A:', 'B:'):
            continue
        host, stimulus, state = words[0][0], words[1], words[2]
        if not state.replace('_', '').isupper() or stimulus in ('event', 'VIOLATION'):
            continue
        if stimulus == 'created':
            number[host] += 2
            endpoints[str(number[host])] = [[state, '']]
        else:
            endpoints[str(number[host])].append([state, stimulus])
print(json.dumps(endpoints))
