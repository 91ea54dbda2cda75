export function findBun(root: string): string;
