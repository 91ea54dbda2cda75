// Durations depend on the machine. The ratio of two efforts does not, if each is measured in processor time of this process,
// which does not count the work of other processes.

/** The minimum processor time of several runs in milliseconds, which excludes compilation and garbage collection. */
export function effort(work: () => unknown, times = 3): number {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times; time += 1) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** The ratio of the effort for eight times the size: 8 if linear, 64 if quadratic. */
export function growth(work: (size: number) => unknown, size: number): number {
  return effort(() => work(8 * size)) / effort(() => work(size));
}
