// The version of the wire protocol that this code speaks. proto/README.md says what it is.

/** Another major version is refused at registration; a newer minor one is not. */
export const PROTOCOL_VERSION = { major: 1, minor: 0 } as const
