// The error for a missing object that a call names.
#pragma once

#include <stela/framework/error.hpp>
#include <stela/framework/export.hpp>

#include <string>

namespace stela {

/// The object that the call names doesn't exist: a stream, a message, a partition, a projector.
class STELA_FRAMEWORK_EXPORT NotFound : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace stela
