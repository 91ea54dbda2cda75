export async function benchLogin(_parts: AsyncDisposableStack): Promise<void> {}
