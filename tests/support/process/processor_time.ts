/** The processor time of this process since then. Unlike a clock, it hardly depends on what else the machine does. */
export function processorMilliseconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
