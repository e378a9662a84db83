// The simulator's own test: relays with a fault, each found by the invariant named for it.
#pragma once

namespace stela::sim {

/// Runs seeds against each mutant until one breaks the invariant that the table names, and looks
/// that the same seed is clean without the mutation. True if all were found; `seconds` of CPU time
/// each at most.
bool find_mutants(double seconds);

}  // namespace stela::sim
