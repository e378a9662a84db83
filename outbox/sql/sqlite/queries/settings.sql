SELECT fence, leasing FROM outbox_settings WHERE one = 1
