/** The version of the edge. */
export const VERSION = "0.1.0"
