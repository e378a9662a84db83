// Laws of the tables: statements that must give no row, and what is said of those that they give.
#pragma once

#include "care/inspection.hpp"

#include <string_view>

namespace stela::care {

/// Each row is a problem: its subject is where, its detail what is wrong, in the place of {}.
struct Law {
  using Tell = FunctionRef<void(std::string_view subject, std::string_view detail)>;

  void (*broken)(database::Connection& connection, Tell tell);
  std::string_view where;
  std::string_view what;
  /// Empty: that on damage.
  std::string_view advice;
};

/// Reports where the law is broken.
void hold(Inspection& inspection, const Law& law);

namespace laws {

extern const Law kinds_are_numbered;
extern const Law groups_have_events;
extern const Law tag_epoch_is_there;

}  // namespace laws
}  // namespace stela::care
