// Calls the subjects of a contract by their names, not by their numbers.
#pragma once

#include <string>

namespace stela::test {

struct SubjectNames {
  template <class Subject>
  static std::string GetName(int) {
    return Subject::name;
  }
};

}  // namespace stela::test
