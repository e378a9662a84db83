// stela: enum_names(E) must return a range of pairs of a value and its name
#include "../domain.hpp"

enum class Size { small, large };
constexpr auto enum_names(Size) {
  return std::array{std::pair{"small", Size::small}, std::pair{"large", Size::large}};
}
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<Size>{});
}
