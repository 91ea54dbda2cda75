// How long something takes says as much of the machine as of the code. What holds on every machine is how two efforts
// compare, each counted in the processor time of this process alone, which does not pass while others have the machine.

/** Milliseconds of processor time: the least of some times, so that neither compiling nor collecting garbage counts. */
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

/** How many times the effort is for eight times as much: 8 where it is linear, 64 where it is quadratic. */
export function growth(work: (size: number) => unknown, size: number): number {
  return effort(() => work(8 * size)) / effort(() => work(size));
}
