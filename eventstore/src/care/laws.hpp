// Laws of the tables: statements that must return no row, and the problem for each row that they do
// return.
#pragma once

#include "care/inspection.hpp"

#include <string_view>

namespace stela::care {

/// Each row is a problem: its subject is the place; its detail fills the {} of the text.
struct Law {
  using Tell = FunctionRef<void(std::string_view subject, std::string_view detail)>;

  void (*broken)(database::Connection& connection, Tell tell);
  std::string_view where;
  std::string_view what;
  /// Empty: the advice on damage.
  std::string_view advice;
};

/// Reports violations of the law.
void hold(Inspection& inspection, const Law& law);

namespace laws {

extern const Law kinds_are_numbered;
extern const Law groups_have_events;
extern const Law tag_epoch_is_there;

}  // namespace laws
}  // namespace stela::care
