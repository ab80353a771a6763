"""Runs a command and writes what it cost: launch.py REPORT LIMIT_SECONDS COMMAND...

A small process of its own, because Linux counts into a child's peak memory that of the process
which forked it; a Python with NumPy and models in it would hide what the command needed. REPORT
gets `status seconds peak_bytes`. A command over the limit (0: none) is ended with SIGKILL.
"""

import os
import subprocess
import sys
import time


def main(report, limit, command):
    """Runs the command to its end or the limit."""
    start, limit = time.perf_counter(), float(limit)
    process = subprocess.Popen(command)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG if limit else 0)
        if pid:
            break
        if time.perf_counter() - start > limit:
            process.kill()
            limit = 0
        else:
            time.sleep(0.005)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(report, "w", encoding="utf-8") as file:
        file.write(f"{process.returncode} {seconds} {usage.ru_maxrss * 1024}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
