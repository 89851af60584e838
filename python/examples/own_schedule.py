# SPDX-License-Identifier: Apache-2.0
"""Builds a schedule from a function, lints it, simulates it and exports it."""

import weir


def one_f_one_b(rank, num_ranks, num_microbatches):
    warmup = min(num_ranks - rank - 1, num_microbatches)
    order = [(rank, "F", m) for m in range(warmup)]
    for m in range(num_microbatches):
        order += [(rank, "F", warmup + m)] * (warmup + m < num_microbatches)
        order += [(rank, "B", m)]
    return order


schedule = weir.schedule(one_f_one_b, num_ranks=4, num_microbatches=8)
print(schedule.lint("pytorch"))
print(weir.simulate(schedule=schedule, costs="f=1,b=2"))
schedule.save("one-f-one-b.csv")
