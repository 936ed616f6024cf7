//! REST and RESP in front of the graph.
