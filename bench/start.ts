export async function benchStart(_parts: AsyncDisposableStack): Promise<void> {}
