// Files of tensors written byte by byte, right ones and wrong ones.
export interface Written {
  readonly dtype: unknown;
  readonly shape: unknown;
  readonly bytes: Uint8Array;
}

/** 8 bytes for the header's length, the header, the data. */
export function fileOf(header: string | Uint8Array, data: Uint8Array = new Uint8Array(0), length?: bigint): Uint8Array<ArrayBuffer> {
  const text = typeof header === 'string' ? new TextEncoder().encode(header) : header;
  const file = new Uint8Array(8 + text.length + data.length);
  new DataView(file.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  file.set(text, 8);
  file.set(data, 8 + text.length);
  return file;
}

/** Tensors side by side, in this order. */
export function filesOf(tensors: Readonly<Record<string, Written>>, metadata?: unknown, pad = ''): Uint8Array<ArrayBuffer> {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, { dtype, shape, bytes }]) => [name, { dtype, shape, data_offsets: [end, (end += bytes.length)] }]);
  const header = JSON.stringify({ ...(metadata === undefined ? {} : { __metadata__: metadata }), ...Object.fromEntries(entries) });
  const data = new Uint8Array(end);
  let at = 0;
  for (const { bytes } of Object.values(tensors)) {
    data.set(bytes, at);
    at += bytes.length;
  }
  return fileOf(header + pad, data);
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);

/** What is in a file, read as simply as the format is. */
export function contentOf(file: Uint8Array): { metadata: Record<string, string>; tensors: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>; start: number } {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...tensors } = JSON.parse(new TextDecoder().decode(file.slice(8, 8 + length))) as Record<string, never>;
  return { metadata: metadata!, tensors, start: 8 + length };
}
