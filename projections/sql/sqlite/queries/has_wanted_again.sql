SELECT EXISTS (SELECT 1 FROM projection_parked WHERE state = 'retry')
