#include <stela/eventstore/verify.hpp>

#include "core_of.hpp"

#include <stela/eventstore/operations.hpp>

namespace stela {

std::string to_string(const Problem& problem) {
  return problem.where + ": " + problem.what + "; " + problem.advice;
}

VerifyResult StoreOperations::verify(FunctionRef<void(const Problem&)> report,
                                     const VerifyOptions& options) {
  return core_of(store_).verify(report, options);
}

}  // namespace stela
