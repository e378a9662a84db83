// stela: an optional can't hold another optional
#include "../domain.hpp"

#include <cereal/types/optional.hpp>

struct Doubtful {
  static constexpr stela::EventType event_type{"order.doubtful"};
  std::optional<std::optional<int>> number;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number));
  }
};
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Doubtful{});
}
