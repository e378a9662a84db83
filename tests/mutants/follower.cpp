#include "mutants/follower.hpp"

#include "mutants/followed.hpp"

namespace stela::mutants {

std::unique_ptr<Follower> make_follower(Mutant, Store& store, const nats::ConsumerOptions& options,
                                        nats::ConsumerPorts ports) {
  return followed::unchanged(store, options, std::move(ports));
}

}  // namespace stela::mutants
