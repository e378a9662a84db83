// The source of reading connections.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/detail/function_ref.hpp>

namespace stela::sqlite {

/// Lends connections to cursors, one page at a time.
class Reading {
 public:
  virtual ~Reading() = default;
  virtual void read(FunctionRef<void(Connection&)> work) = 0;
};

}  // namespace stela::sqlite
