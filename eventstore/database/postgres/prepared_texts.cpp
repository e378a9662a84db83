#include "database/postgres/prepared_texts.hpp"

#include <algorithm>

namespace stela::postgres {

PreparedTexts::Text& PreparedTexts::use(std::string_view scope, std::string_view sql,
                                        const std::vector<Oid>& types) {
  // A zero byte separates them, because neither a path nor a text contains one.
  key_.assign(scope).append(1, '\0').append(sql).append(1, '\0');
  for (const Oid type : types) key_.append(std::to_string(type)).append(1, ',');
  const auto known = by_key_.find(key_);
  if (known == by_key_.end()) {
    if (entries_.size() == max_texts) drop(std::prev(entries_.end()));
    entries_.push_front({key_, {}});
    by_key_.emplace(entries_.front().key, entries_.begin());
    return entries_.front().text;
  }
  entries_.splice(entries_.begin(), entries_, known->second);
  Text& text = entries_.front().text;
  if (text.name.empty()) text.name = prefix_ + std::to_string(++names_);
  return text;
}

void PreparedTexts::forget(const Text& text) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return &each.text == &text; });
  if (entry != entries_.end()) drop(entry);
}

void PreparedTexts::drop(Entries::iterator entry) {
  if (entry->text.is_prepared) dropped_.push_back(std::move(entry->text.name));
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace stela::postgres
