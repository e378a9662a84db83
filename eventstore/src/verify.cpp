#include <stela/eventstore/verify.hpp>

#include "store_core.hpp"

#include <stela/eventstore/operations.hpp>

namespace stela {

std::string to_string(const Problem& problem) {
  return problem.where + ": " + problem.what + "; " + problem.advice;
}

VerifyResult StoreOperations::verify(FunctionRef<void(const Problem&)> report,
                                     const VerifyOptions& options) {
  return store_core(store_).verify(report, options);
}

}  // namespace stela
