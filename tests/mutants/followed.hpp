// The followers of the copies: each is defined in a file that the build makes.
#pragma once

#include "mutants/follower.hpp"

#include <memory>

namespace stela::mutants::followed {

using Make = std::unique_ptr<Follower>(Store&, const nats::ConsumerOptions&, nats::ConsumerPorts);

Make unchanged;

}  // namespace stela::mutants::followed
