// Prints Stela's enums by name, in the names of tests and in their failures.
#pragma once

#include <ostream>
#include <type_traits>

namespace stela {

template <class Enum>
requires std::is_enum_v<Enum> && requires(Enum value) {
  to_string(value);
}
void PrintTo(const Enum& value, std::ostream* out) {
  *out << to_string(value);
}

namespace sqlite {
using stela::PrintTo;
}

}  // namespace stela
