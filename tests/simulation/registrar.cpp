#include "simulation/registrar.hpp"

#include <stela/framework/codec/codec.hpp>

#include <set>

namespace stela::sim {
namespace {

std::string in_words(const Seen& seen) {
  return std::to_string(seen.taken) + " of " + std::to_string(seen.seats) + " seats and " +
         std::to_string(seen.courses) + " courses";
}

class Registrar {
 public:
  Registrar(const Codec codec, const Answers& answers) : codec_{codec}, answers_{answers} {
    for (const auto& [job, answered] : answers) {
      if (answered.sequence == 0) refusals_.emplace(answered.position, job);
    }
  }

  std::string check_refusals() {
    const auto [first, end] = refusals_.equal_range(last_);
    for (auto at = first; at != end; ++at) {
      const Answered& answered = answers_.at(at->second);
      const Seen was = state_of(answered.course, answered.student);
      if (answered.seen != was)
        return "a refusal there saw " + in_words(answered.seen) + ", and there were " +
               in_words(was);
      if (!answered.only_looked && may_enrol(was)) return "a refusal there was wrong";
    }
    return {};
  }

  std::string take(const StoredEvent& event) {
    if (event.sequence.value() != ++last_) return "there is a gap before it";
    if (event.type() == "course.enrolled") return enrol(event);
    if (event.type() == "course.resized") return resize(event);
    if (event.type() == "student.dropped") return drop(event);
    const auto noted = codec::decode<Noted>(codec_, event.payload);
    return look(event, noted.job, noted.course.stream(), noted.student.stream().name());
  }

  std::string find_missing() const {
    for (const auto& [job, answered] : answers_) {
      const auto found = places_.find(job);
      const std::int64_t place = found == places_.end() ? 0 : found->second;
      if (place != answered.sequence) {
        return "job " + std::to_string(job) + " was said to be at " +
               std::to_string(answered.sequence) + " and is at " + std::to_string(place);
      }
    }
    return {};
  }

 private:
  Seen state_of(const std::string& course, const std::string& student) {
    return {seats_[course], taken_[course], courses_[student]};
  }

  /// What holds for each event: its stream, its tags, and that its job has no other.
  std::string look(const StoredEvent& event, std::int64_t job, const StreamId& stream,
                   const std::string& tags) {
    if (!places_.emplace(job, event.sequence.value()).second) return "its job was done before";
    if (event.stream != stream) return "it is in another stream";
    if (event.tags != tags) return "its tags are '" + std::string{event.tags} + "'";
    return {};
  }

  std::string enrol(const StoredEvent& event) {
    const auto e = codec::decode<Enrolled>(codec_, event.payload);
    const Seen was = state_of(e.course.key(), e.student.key());
    ++taken_[e.course.key()];
    ++courses_[e.student.key()];
    if (e.seen != was) {
      return "its decision saw " + in_words(e.seen) + ", and there were " + in_words(was);
    }
    if (!may_enrol(was)) return "a rule is broken";
    return look(event, e.job, e.course.stream(), e.student.stream().name());
  }
  std::string resize(const StoredEvent& event) {
    const auto e = codec::decode<Resized>(codec_, event.payload);
    seats_[e.course.key()] = e.seats;
    return look(event, e.job, e.course.stream(), "");
  }
  std::string drop(const StoredEvent& event) {
    const auto e = codec::decode<Dropped>(codec_, event.payload);
    --taken_[e.course.key()];
    --courses_[e.student.key()];
    return look(event, e.job, e.student.stream(), e.course.stream().name());
  }

  const Codec codec_;
  const Answers& answers_;
  std::multimap<std::int64_t, std::int64_t> refusals_;
  std::map<std::int64_t, std::int64_t> places_;
  std::map<std::string, std::int64_t> seats_;
  std::map<std::string, std::int64_t> taken_;
  std::map<std::string, std::int64_t> courses_;
  std::int64_t last_ = 0;
};

}  // namespace

std::string find_contradiction(EventStore& store, const Answers& answers) {
  Registrar registrar{store.conventions().codec, answers};
  std::string problem = registrar.check_refusals();
  if (!problem.empty()) return "at the beginning: " + problem;
  for (const StoredEvent& event : store.read_all({.with_tags = true})) {
    problem = registrar.take(event);
    if (problem.empty()) problem = registrar.check_refusals();
    if (!problem.empty()) return event.describe() + ": " + problem;
  }
  return registrar.find_missing();
}

}  // namespace stela::sim
