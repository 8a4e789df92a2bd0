"""Real processes of a cluster under faults, and checkers of what their clients saw. `../cluster_faults.py` is the program; the way of a run:

    nodes      three processes, whose traffic goes through        proxy      which cuts it
    nemesis    chooses faults by a seed                           clients    write and read meanwhile, and note what they saw (history)
    registers, lists, commits    judge the history                selftest   histories that are wrong, which they have to find
"""
